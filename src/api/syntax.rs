//! What names and labels look like, by the rules of the API server.

/// A name of most objects: a DNS subdomain (RFC 1123), up to 253 characters.
#[must_use]
pub fn is_subdomain(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(is_dns_part)
}

/// A name of a namespace: a DNS label (RFC 1123), up to 63 characters.
#[must_use]
pub fn is_dns_label(name: &str) -> bool {
    name.len() <= 63 && is_dns_part(name)
}

fn is_dns_part(part: &str) -> bool {
    let end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    part.starts_with(end) && part.ends_with(end) && part.chars().all(|c| end(c) || c == '-')
}

/// A label's key: a name of up to 63 characters, perhaps after a DNS subdomain and a slash.
#[must_use]
pub fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_qualified(name),
        None => is_qualified(key),
    }
}

/// A label's value: empty, or like the name in a key.
#[must_use]
pub fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_qualified(value)
}

fn is_qualified(name: &str) -> bool {
    let end = |c: char| c.is_ascii_alphanumeric();
    let inside = |c: char| end(c) || matches!(c, '-' | '_' | '.');
    name.len() <= 63 && name.starts_with(end) && name.ends_with(end) && name.chars().all(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_the_server_takes_them() {
        let long = "a".repeat(64);
        for name in ["a", "node-1", "ip-10-0-0-1.eu.example", "1a", "a.b-c.d", long.as_str()] {
            assert!(is_subdomain(name), "{name}");
        }
        for name in ["", "A", "a_b", "-a", "a-", "a..b", ".a", "a.", "a/b", "\u{e4}", &"a".repeat(254)] {
            assert!(!is_subdomain(name), "{name}");
        }
        assert!(is_dns_label("drainplan-system") && !is_dns_label("a.b") && !is_dns_label(&long));
    }

    #[test]
    fn labels_as_the_server_takes_them() {
        for key in ["pool", "Pool_1.x", "kubernetes.io/hostname", "a-b.c/D"] {
            assert!(is_label_key(key), "{key}");
        }
        for key in ["", "/", "a/", "/a", "a/b/c", "A.b/c", "-a", "a b", &"a".repeat(64)] {
            assert!(!is_label_key(key), "{key}");
        }
        assert!(is_label_value("") && is_label_value("v1.2_3-x"));
        assert!(!is_label_value("a b") && !is_label_value("a/b") && !is_label_value(".a"));
    }
}
