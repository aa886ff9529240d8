/** Segments of paths with at least 20 characters and three digits: some services have the key of a caller in the path. */
const KEY = /^(?=(?:[^0-9]*[0-9]){3})[\w.~%-]{20,}$/

/** Returns origin and path of a URL without what may be a key: the query, and such segments. */
export function addressOf(url: string): string {
  const { origin, pathname } = new URL(url)
  const segments = pathname.split('/').map((segment) => (KEY.test(segment) ? '…' : segment))
  return origin + segments.join('/')
}
