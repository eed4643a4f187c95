"""Text to syntax trees and back: one LALR grammar, frozen nodes, a printer."""
