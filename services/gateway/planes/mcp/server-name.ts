/** Prefix of the path; the rest is the name of a server. */
const PREFIX = '/mcp/'
/** Names of an MCPServer (docs/spec/crds.md) and of static upstreams (docs/spec/gateway.md, rule 7). */
const SERVER_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/

let lastPath = ''
let lastName: string | null = null

/**
 * Returns the name of the server in a path, or null when the path has no valid name. Keeps the last one: V8 internalizes each new string that
 * is looked up in a `Map`.
 */
export function serverName(path: string): string | null {
  if (path === lastPath) return lastName
  const name = path.startsWith(PREFIX) ? path.slice(PREFIX.length) : ''
  lastPath = path
  lastName = SERVER_NAME.test(name) ? name : null
  return lastName
}
