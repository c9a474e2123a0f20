"""What the inspector shows: facts, trees and texts as lines, and the widget that paints them."""
