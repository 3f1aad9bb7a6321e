"""Values of attachments.proto."""
