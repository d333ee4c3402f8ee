"""What two parties could read differently is refused, and nothing behind it becomes a request (RFC 9112, 11.2)."""

import re

import pytest

MARK = b'POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 13\r\n\r\n{"model":"m"}'

FRAMING = {
    "a length and a coding": [("Content-Length", "6"), ("Transfer-Encoding", "chunked")],
    "a coding and a length": [("Transfer-Encoding", "chunked"), ("Content-Length", "6")],
    "two lengths": [("Content-Length", "5"), ("Content-Length", "6")],
    "the same length twice": [("Content-Length", "5"), ("Content-Length", "5")],
    "a list of lengths": [("Content-Length", "5, 6")],
    "a list of one length": [("Content-Length", "5, 5")],
    "a signed length": [("Content-Length", "+5")],
    "a negative length": [("Content-Length", "-5")],
    "a hexadecimal length": [("Content-Length", "0x5")],
    "a length with a space": [("Content-Length", "1 2")],
    "a length with a comma": [("Content-Length", "5,")],
    "a fractional length": [("Content-Length", "5.0")],
    "an empty length": [("Content-Length", "")],
    "a length over 64 bits": [("Content-Length", "18446744073709551621")],
    "a length of a thousand digits": [("Content-Length", "0" * 999 + "5")],
    "an unknown coding": [("Transfer-Encoding", "xchunked")],
    "a coding after chunked": [("Transfer-Encoding", "chunked, identity")],
    "a coding before chunked": [("Transfer-Encoding", "gzip, chunked")],
    "identity": [("Transfer-Encoding", "identity"), ("Content-Length", "5")],
    "chunked twice": [("Transfer-Encoding", "chunked, chunked")],
    "two fields of codings": [("Transfer-Encoding", "chunked"), ("Transfer-Encoding", "identity")],
    "an empty coding": [("Transfer-Encoding", ""), ("Content-Length", "5")],
    "a vertical tab in the coding": [("Transfer-Encoding", "\x0bchunked")],
    "a quoted coding": [("Transfer-Encoding", '"chunked"')],
    "a semicolon in the coding": [("Transfer-Encoding", "chunked;q=1")],
}


def refused(client, request: bytes, statuses=(400, 501)) -> None:
    """Answered with one of these statuses and the end of the connection; or ended at once. Nothing reached an engine."""
    before = len(client.upstream.strangers)
    with client.connect() as connection:
        connection.send(request)
        rest = connection.rest()
    if rest:
        assert rest.startswith(b"HTTP/1.1 "), rest
        assert int(rest[9:12]) in statuses, rest[:300]
        assert len(re.findall(rb"HTTP/1.1 \d", rest)) == 1, rest
    assert client.case.nothing_arrived()
    assert len(client.upstream.strangers) == before, "something was smuggled"


@pytest.mark.parametrize("fields", FRAMING.values(), ids=FRAMING.keys())
def test_a_request_with(client, fields):
    refused(client, client.head(fields=fields) + b"0\r\n\r\n" + MARK)


def test_a_coding_in_http_1_0(client):
    refused(client, client.head(version="HTTP/1.0", fields=[("Transfer-Encoding", "chunked")]) + b"0\r\n\r\n" + MARK)


HEADS = {
    "a folded field": b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-A: 1\r\n folded\r\nContent-Length: 0\r\n\r\n",
    "a folded length": b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n 5\r\n\r\nabcde",
    "a field folded by a tab": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n\tchunked\r\n\r\n0\r\n\r\n",
    "a space before the colon": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n\r\nabcde",
    "a space before the first field": b"POST / HTTP/1.1\r\n Host: x\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "a bare LF after the first line": b"POST / HTTP/1.1\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "a bare LF after a field": b"POST / HTTP/1.1\r\nHost: x\nContent-Length: 0\r\n\r\n",
    "only bare LFs": b"POST / HTTP/1.1\nHost: x\nContent-Length: 0\n\n",
    "a bare LF at the end": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\n" + MARK,
    "a bare CR in a field": b"POST / HTTP/1.1\r\nHost: x\r\nX-A: 1\rContent-Length: 5\r\n\r\n",
    "a CR before the end": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\r\n\r\n",
    "a zero byte in a value": b"POST / HTTP/1.1\r\nHost: x\r\nX-A: a\x00b\r\nContent-Length: 0\r\n\r\n",
    "a zero byte in a name": b"POST / HTTP/1.1\r\nHost: x\r\nX\x00A: b\r\nContent-Length: 0\r\n\r\n",
    "a control character in a value": b"POST / HTTP/1.1\r\nHost: x\r\nX-A: a\x01b\r\nContent-Length: 0\r\n\r\n",
    "a name with a space": b"POST / HTTP/1.1\r\nHost: x\r\nX A: b\r\nContent-Length: 0\r\n\r\n",
    "a name with a byte over 127": b"POST / HTTP/1.1\r\nHost: x\r\nX-\xe9: b\r\nContent-Length: 0\r\n\r\n",
    "an empty name": b"POST / HTTP/1.1\r\nHost: x\r\n: b\r\nContent-Length: 0\r\n\r\n",
    "a line without a colon": b"POST / HTTP/1.1\r\nHost: x\r\nrubbish\r\nContent-Length: 0\r\n\r\n",
    "no Host": b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
    "two Hosts": b"POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 0\r\n\r\n",
    "the same Host twice": b"POST / HTTP/1.1\r\nHost: a\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
    "a Host with a space": b"POST / HTTP/1.1\r\nHost: a b\r\nContent-Length: 0\r\n\r\n",
    "a Host with a path": b"POST / HTTP/1.1\r\nHost: a/b\r\nContent-Length: 0\r\n\r\n",
    "a Host with a user": b"POST / HTTP/1.1\r\nHost: u@a\r\nContent-Length: 0\r\n\r\n",
    "two spaces in the first line": b"POST  / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "a tab in the first line": b"POST\t/\tHTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "a space after the version": b"POST / HTTP/1.1 \r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "a target with a space": b"POST /a b HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "a target with a control character": b"POST /a\x01b HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "a target without a slash": b"POST v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "a star that is no OPTIONS": b"POST * HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "no version": b"GET /v1/models\r\n\r\n",
    "a version in lower case": b"POST / http/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "a version with two digits": b"POST / HTTP/1.10\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "a method with a strange character": b"PO(ST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "no method": b" / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "rubbish": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "the start of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}


@pytest.mark.parametrize("request_bytes", HEADS.values(), ids=HEADS.keys())
def test_a_head_with(client, request_bytes):
    refused(client, request_bytes, (400, 501, 505))


def test_a_major_version_that_nobody_speaks(client):
    refused(client, client.head(version="HTTP/2.0", fields=[("Content-Length", "0")]), (505,))


def test_a_tunnel_is_not_opened(client):
    refused(client, b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n", (400, 405, 501))


CHUNKS = {
    "a bare LF after its size": b"5\nabcde\r\n0\r\n\r\n",
    "a bare LF after its data": b"5\r\nabcde\n0\r\n\r\n",
    "a bare CR after its size": b"5\rabcde\r\n0\r\n\r\n",
    "a prefixed size": b"0x5\r\nabcde\r\n0\r\n\r\n",
    "a signed size": b"+5\r\nabcde\r\n0\r\n\r\n",
    "a negative size": b"-5\r\nabcde\r\n0\r\n\r\n",
    "a space before its size": b" 5\r\nabcde\r\n0\r\n\r\n",
    "a space after its size": b"5 \r\nabcde\r\n0\r\n\r\n",
    "an empty size": b"\r\nabcde\r\n0\r\n\r\n",
    "a size of no digits": b"z\r\nabcde\r\n0\r\n\r\n",
    "a size over 64 bits": b"10000000000000005\r\nabcde\r\n0\r\n\r\n",
    "an underscore in its size": b"0_5\r\nabcde\r\n0\r\n\r\n",
    "more data than its size": b"5\r\nabcdefgh\r\n0\r\n\r\n",
    "less data than its size": b"8\r\nabcde\r\n0\r\n\r\n" + MARK,
    "no CR LF after its data": b"5\r\nabcde0\r\n\r\n",
    "a bare LF in its extension": b"5;a\nb\r\nabcde\r\n0\r\n\r\n",
    "a bare CR in its extension": b"5;a\rb\r\nabcde\r\n0\r\n\r\n",
    "a control character in its extension": b"5;\x00\r\nabcde\r\n0\r\n\r\n",
    "a bare LF after the last": b"5\r\nabcde\r\n0\n\r\n" + MARK,
    "a bare LF at the very end": b"5\r\nabcde\r\n0\r\n\n" + MARK,
    "a bare LF in a trailer": b"5\r\nabcde\r\n0\r\nX-A: b\n\r\n",
    "a trailer that is no field": b"5\r\nabcde\r\n0\r\nrubbish\r\n\r\n",
    "a folded trailer": b"5\r\nabcde\r\n0\r\nX-A: b\r\n c\r\n\r\n",
    "a trailer with a space before its colon": b"5\r\nabcde\r\n0\r\nX-A : b\r\n\r\n",
}


@pytest.mark.parametrize("body", CHUNKS.values(), ids=CHUNKS.keys())
def test_a_chunk_with(client, body):
    refused(client, client.head(fields=[("Transfer-Encoding", "chunked")]) + body, (400, 408))


def test_trailers_cannot_change_the_request(client, case):
    """RFC 9110, 6.5.1: fields of framing, routing and authentication have no place in trailers."""
    body = client.body()
    client.ask(client.head(fields=[("Transfer-Encoding", "chunked")]) + b"%x\r\n%s\r\n0\r\n" % (len(body), body) +
               b"Content-Length: 3\r\nAuthorization: Bearer x\r\nTransfer-Encoding: chunked\r\nHost: evil\r\n\r\n")
    if not case.nothing_arrived():
        head = case.request().head
        assert head.all("authorization") == [] and "evil" not in head.get("host")
        assert len(head.all("content-length")) + len(head.all("transfer-encoding")) == 1


def test_what_follows_a_refused_request_is_not_read(client):
    before = len(client.upstream.strangers)
    with client.connect() as connection:
        connection.send(b"BROKEN\r\n\r\n" + client.post())
        assert len(re.findall(rb"HTTP/1.1 \d", connection.rest())) <= 1
    assert client.case.nothing_arrived() and len(client.upstream.strangers) == before
