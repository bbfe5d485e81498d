//! One client: reads commands, runs them in its session, and writes replies and pushed messages.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

use super::wire::{MAX_PUSHES, MAX_REPLIES, Wire};
use crate::{
    engine::Session,
    resp::{ProtocolError, Reply, RequestParser, encode_reply},
};

/// Serves `session` until the client disconnects, breaks the protocol, its session is over, or `stopped` completes.
/// In the last case the client still gets the replies of commands that have run.
///
/// Dropping the future closes the connection at once. In both cases a blocked command takes nothing.
pub(super) async fn serve<R, W>(
    mut session: Session,
    reader: R,
    writer: W,
    stopped: impl Future,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut wire = Wire::new(reader, writer);
    tokio::select! {
        gone = talk(&mut session, &mut wire) => gone?,
        _ = stopped => {}
    }
    // A session that is over, as after QUIT, still gets its last replies.
    wire.flush(|| false).await
}

async fn talk<R, W>(session: &mut Session, wire: &mut Wire<R, W>) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut parser = RequestParser::default();
    loop {
        if let Err(error) = run_buffered(session, &mut parser, wire).await? {
            put(session, &Reply::Error(error.to_string()), wire);
            return Ok(());
        }
        if session.is_over() {
            return Ok(());
        }
        tokio::select! {
            push = session.next_push() => match push {
                Some(push) => {
                    put(session, &push, wire);
                    wire.make_room(MAX_PUSHES, || session.is_over()).await?;
                }
                None => return Ok(()),
            },
            moved = wire.progress(usize::MAX) => moved?,
        }
    }
}

/// Runs every complete command. Their replies are sent together.
async fn run_buffered<R, W>(
    session: &mut Session,
    parser: &mut RequestParser,
    wire: &mut Wire<R, W>,
) -> io::Result<Result<(), ProtocolError>>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    while !session.is_over() {
        let args = match parser.next(&mut wire.input) {
            Ok(Some(args)) => args,
            Ok(None) => break,
            Err(error) => return Ok(Err(error)),
        };
        let reply = wire.until(session.call(&args)).await?;
        put_pushes(session, wire);
        put(session, &reply, wire);
        wire.make_room(MAX_REPLIES, || session.is_over()).await?;
        // A long pipeline must not block other tasks of this thread.
        tokio::task::consume_budget().await;
    }
    Ok(Ok(()))
}

fn put_pushes<R, W>(session: &mut Session, wire: &mut Wire<R, W>)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    while let Some(push) = session.try_push() {
        put(session, &push, wire);
    }
}

fn put<R, W>(session: &Session, reply: &Reply, wire: &mut Wire<R, W>)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    encode_reply(reply, session.protocol(), wire.output());
}
