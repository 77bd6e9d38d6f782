"""Finds the messages: what one rank sent and another received."""


class Message:
    """What both ends know of one message. Times are those of the files until align()."""

    def __init__(self, source, target, sequence):
        self.source, self.target, self.sequence = source, target, sequence
        self.protocol, self.tag, self.bytes = "", 0, 0
        self.sent = self.send_end = None
        self.arrived = self.matched = self.receive_end = None
        self.unexpected = False

    def known(self):
        return self.sent is not None and self.arrived is not None


def find_messages(ranks):
    messages = {}
    for rank in ranks:
        for event in rank.events:
            arguments = event["args"]
            if not arguments.get("sequence"):
                continue
            peer, what, phase = arguments["peer"], event["name"].partition(" ")[0], event["ph"]
            leaves = event["cat"] == "send"
            key = (rank.number, peer) if leaves else (peer, rank.number)
            key += (arguments["sequence"],)
            message = messages.setdefault(key, Message(*key))
            if arguments.get("protocol"):
                message.protocol, message.tag = arguments["protocol"], arguments["tag"]
                message.bytes = max(message.bytes, arguments["bytes"])
            if leaves:
                setattr(message, "sent" if phase == "b" else "send_end", event["ts"])
            elif what == "receive":
                setattr(message, "matched" if phase == "b" else "receive_end", event["ts"])
            elif what == "unexpected":
                message.unexpected = True
            if not leaves and phase != "e" and message.arrived is None and what != "eager":
                message.arrived = event["ts"]
    return messages
