"""The three streams of NEXMark, an auction house: persons, auctions and bids."""
