/** RFC 9728, section 3.1. */
export const WELL_KNOWN = '/.well-known/oauth-protected-resource'

/** docs/spec/crds.md and core rule 7 of docs/spec/gateway.md: names of MCP servers. */
const MCP_PATH = /^\/mcp\/([A-Za-z0-9][A-Za-z0-9._-]{0,62})$/

/** Public URLs of the gateway's resources (docs/spec/gateway.md, `identity.resourceBaseURL`). */
export class Resources {
  readonly #base: URL | null

  constructor(resourceBaseURL: string) {
    this.#base = resourceBaseURL === '' ? null : new URL(resourceBaseURL)
  }

  /** Returns the server of a request path, or null. */
  server(path: string): string | null {
    return MCP_PATH.exec(path)?.[1] ?? null
  }

  /** RFC 8707: `<resourceBaseURL>/mcp/<name>`; null if no base is configured. */
  of(server: string): string | null {
    return this.#base === null ? null : `${this.#base.origin}${this.#path}/mcp/${server}`
  }

  /** Returns the metadata URL of the resource at `path`: the well-known part is inserted between host and path. */
  metadataURL(path: string): string | null {
    return this.#base === null ? null : `${this.#base.origin}${WELL_KNOWN}${this.#path}${path}`
  }

  /** Returns the server of a metadata path, with or without the base path, which a proxy may strip; null if there is none. */
  described(path: string): string | null {
    if (this.#base === null || !path.startsWith(WELL_KNOWN)) return null
    const rest = path.slice(WELL_KNOWN.length)
    const within = this.#path !== '' && rest.startsWith(`${this.#path}/`)
    return this.server(within ? rest.slice(this.#path.length) : rest)
  }

  /** Base path without a trailing slash. */
  get #path(): string {
    return this.#base === null ? '' : this.#base.pathname.replace(/\/$/, '')
  }
}
