"""`tokenglass models share`: the store as a hub for the room. The server is `hub/share.py`."""

from __future__ import annotations

from pathlib import Path

from tokenglass.cli.columns import size
from tokenglass.cli.language import t
from tokenglass.cli.output import say, write
from tokenglass.cli.parser import Parser
from tokenglass.errors import ModelNotFoundError, ParameterError, TokenglassError
from tokenglass.hub import find, store_folder, stored_path
from tokenglass.hub.share import Share, own_address

PORT = 8790
ANY_ADDRESS = ("0.0.0.0", "::", "")


def share_models(arguments: list[str], parser: Parser) -> int:
    """Serves until Ctrl-C; the line with HF_ENDPOINT goes to stdout, the rest to stderr."""
    options = with_options(parser).values(arguments)
    store, only = store_folder(), [_stored(name).name for name in options["names"]]
    if not 0 <= options["port"] < 1 << 16:
        raise ParameterError("--port", f"must be from 0 to 65535, not {options['port']}")

    def on_sent(peer: str, file_name: str) -> None:
        say(t("{peer} fetched {file}", peer=peer, file=file_name))

    try:
        share = Share(store, host=options["host"], port=options["port"], only=only, on_sent=on_sent)
    except (OSError, OverflowError, UnicodeError) as error:
        where = f"{options['host']}:{options['port']}"
        reason = getattr(error, "strerror", None) or str(error)
        raise TokenglassError(
            t("cannot serve at {where}: {reason}", where=where, reason=reason),
            remedy=t("Choose another --port or --host"),
        ) from error
    with share:
        files = share.files()
        if not files:
            raise ModelNotFoundError(
                t("nothing is stored in {path}", path=store), remedy="tokenglass models pull NAME"
            )
        for file in files:
            say(f"  {file.repository}/{file.name}  {size(file.num_bytes)}")
        host = own_address() if options["host"] in ANY_ADDRESS else options["host"]
        if host.startswith("127.") or host in ("localhost", "::1"):
            say(t("Only this machine can reach it. For the room: add --host 0.0.0.0"))
        else:
            say(t("Whoever can reach this address can read these models. Stop with Ctrl-C."))
        say(t("On the other machine, before tokenglass:"))
        address = f"[{host}]" if ":" in host else host
        try:
            write(f"export HF_ENDPOINT=http://{address}:{share.port}\n")
            share.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            say(t("stopped"))
    return 0


def with_options(parser: Parser) -> Parser:
    """The parser behind `tokenglass models share --help`."""
    parser.add_argument("names", nargs="*", metavar="NAME", help=t("only these models; without names all"))
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help=t("where to listen; 0.0.0.0 opens it to the network (default: this machine alone)"),
    )
    parser.add_argument(
        "--port",
        type=int,
        default=PORT,
        metavar="N",
        help=t("0 takes a free one (default: {port})", port=PORT),
    )
    return parser


def _stored(name: str) -> Path:
    path = stored_path(name)
    if path is None:
        is_known = find(name) is not None
        what = (
            t("{name} is not stored here", name=name)
            if is_known
            else t("no model is called {name!r}", name=name)
        )
        raise ModelNotFoundError(what, remedy=t("See {command}", command="tokenglass models list"))
    return path
