//! A thread that talks to a server, so that whoever waits for the answer can stop waiting: the driver itself waits
//! without end for a server that stands still.

use postgres::{Client, Error, SimpleQueryMessage};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What a question got back.
pub(crate) struct Answer {
    /// The server's messages, or its refusal.
    pub(crate) outcome: Result<Vec<SimpleQueryMessage>, Error>,
    /// From sending to the last message, without the way between the threads.
    pub(crate) took: Duration,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// Nothing within the patience. The connection is of no use any more.
    Silent,
    /// An earlier question got none, or the thread is gone.
    Gone,
}

/// A connection with a thread of its own.
pub(crate) struct Asker {
    /// `None` once the connection is given up.
    questions: Option<Sender<String>>,
    answers: Receiver<Answer>,
    thread: Option<JoinHandle<()>>,
}

impl Asker {
    /// Starts the thread and lets it connect. With a limit, a server that takes the connection and then says nothing
    /// is given up too; the driver's own limit ends with the TCP connection.
    pub(crate) fn connect(
        connect: impl FnOnce() -> Result<Client, Error> + Send + 'static,
        limit: Duration,
    ) -> Result<Asker, NoConnection> {
        let (said, connected) = channel();
        let (questions, asked) = channel();
        let (answered, answers) = channel();
        let talk = move || match connect() {
            // A thread that was given up finds nobody to tell, and drops the connection.
            Ok(client) => {
                if said.send(None).is_ok() {
                    answer_all(client, &asked, &answered);
                }
            }
            Err(error) => {
                let _ = said.send(Some(error));
            }
        };
        let thread = thread::Builder::new()
            .name("questions".into())
            .spawn(talk)
            .map_err(NoConnection::NoThread)?;
        match connected.recv_timeout(limit) {
            Ok(None) => Ok(Asker {
                questions: Some(questions),
                answers,
                thread: Some(thread),
            }),
            Ok(Some(error)) => Err(NoConnection::Refused(error)),
            Err(RecvTimeoutError::Timeout) => Err(NoConnection::Silent),
            Err(RecvTimeoutError::Disconnected) => Err(NoConnection::Gone),
        }
    }

    /// Sends `sql` and waits for the whole answer, at most for `patience`; without one, as long as it takes.
    pub(crate) fn ask(&mut self, sql: &str, patience: Option<Duration>) -> Result<Answer, NoAnswer> {
        let sent = self.questions.as_ref().map(|q| q.send(sql.to_owned()));
        if !matches!(sent, Some(Ok(()))) {
            return Err(NoAnswer::Gone);
        }
        let answer = match patience {
            Some(patience) => self.answers.recv_timeout(patience),
            None => self.answers.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        answer.map_err(|error| {
            // An answer that comes late must not be taken for the next question's.
            self.questions = None;
            self.thread = None;
            match error {
                RecvTimeoutError::Timeout => NoAnswer::Silent,
                RecvTimeoutError::Disconnected => NoAnswer::Gone,
            }
        })
    }
}

impl Drop for Asker {
    /// A connection that works is closed when this returns: the server's own counts of sessions are waited for.
    fn drop(&mut self) {
        self.questions = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Why there is no connection.
pub(crate) enum NoConnection {
    /// The system gives no thread.
    NoThread(io::Error),
    /// Nothing within the limit.
    Silent,
    /// The thread ended without a word.
    Gone,
    /// The system or the server said no.
    Refused(Error),
}

fn answer_all(mut client: Client, asked: &Receiver<String>, answered: &Sender<Answer>) {
    while let Ok(sql) = asked.recv() {
        let begun = Instant::now();
        let outcome = client.simple_query(&sql);
        let took = begun.elapsed();
        if answered.send(Answer { outcome, took }).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use postgres::NoTls;
    use std::net::TcpListener;

    #[test]
    fn a_server_that_says_nothing_is_given_up() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        let connect = move || Client::connect(&format!("host=127.0.0.1 port={port} user=x"), NoTls);
        let outcome = Asker::connect(connect, Duration::from_millis(100));
        assert!(matches!(outcome, Err(NoConnection::Silent)));
    }
}
