//! What must hold of the SQL that is run once a data set is made.

use super::{Check, Checked, NO_PASSWORD};

impl Check<'_> {
    /// Whether SQL of the user's is among the data.
    pub(super) fn has_sql(&self) -> bool {
        let parts = self.file.parts();
        self.file.data.sql.is_some() || parts.iter().any(|part| part.data.sql.is_some())
    }

    /// SQL of the data, which is stored and shown as it is.
    pub(super) fn sql(&self) -> Checked {
        let file = self.file;
        let own = std::iter::once((
            file.data.sql.as_deref(),
            vec!["data".to_owned(), "sql".to_owned()],
        ));
        let parts = file.parts();
        let of_parts = parts
            .iter()
            .map(|part| (part.data.sql.as_deref(), vec![part.name.clone()]));
        for (sql, keys) in own.chain(of_parts) {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            self.must(
                !sql.is_some_and(pgdyno_server::sql_may_hold_password),
                &keys,
                || format!("sql: {NO_PASSWORD}"),
            )?;
        }
        Ok(())
    }
}
