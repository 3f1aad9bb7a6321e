"""What travels between the programs: generated stubs, and the channel options that both ends share."""

from muster.lean.protobuf import leave_plain_messages_out

leave_plain_messages_out()
