"""The relay: a program of its own, which joins the two streams of an attachment and moves their bytes unread."""
