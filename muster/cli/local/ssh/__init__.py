"""An SSH server on the user's machine, whose channels are attachments to a running execution; knows asyncssh alone.

`ssh` starts it as its ProxyCommand and speaks with it over two pipes. Nobody else can reach it, so nobody has to prove
anything to it: what its user may do is decided by the coordinator, attachment by attachment.
"""
