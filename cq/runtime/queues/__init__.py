"""Lock-free queues: ring, reorder buffer, hybrid queue, pools and free lists."""
