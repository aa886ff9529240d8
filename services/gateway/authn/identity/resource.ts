/** RFC 9728, section 3.1. */
export const WELL_KNOWN = '/.well-known/oauth-protected-resource'

/** docs/spec/crds.md and core rule 7 of docs/spec/gateway.md: what an MCP server may be called. */
const MCP_PATH = /^\/mcp\/([A-Za-z0-9][A-Za-z0-9._-]{0,62})$/

/** The public addresses of the gateway's resources (docs/spec/gateway.md, `identity.resourceBaseURL`). */
export class Resources {
  readonly #base: URL | null

  constructor(resourceBaseURL: string) {
    this.#base = resourceBaseURL === '' ? null : new URL(resourceBaseURL)
  }

  /** The server that a path of ours is about; null: none. */
  server(path: string): string | null {
    return MCP_PATH.exec(path)?.[1] ?? null
  }

  /** RFC 8707: `<resourceBaseURL>/mcp/<name>`; null where no base is configured. */
  of(server: string): string | null {
    return this.#base === null ? null : `${this.#base.origin}${this.#path}/mcp/${server}`
  }

  /** Where the metadata of the resource at `path` stands: the well-known part goes between host and path. */
  metadataURL(path: string): string | null {
    return this.#base === null ? null : `${this.#base.origin}${WELL_KNOWN}${this.#path}${path}`
  }

  /**
   * The server that a metadata address is about, with or without the path of the base in it: a proxy may take it off.
   * Null: none.
   */
  described(path: string): string | null {
    if (this.#base === null || !path.startsWith(WELL_KNOWN)) return null
    const rest = path.slice(WELL_KNOWN.length)
    const within = this.#path !== '' && rest.startsWith(`${this.#path}/`)
    return this.server(within ? rest.slice(this.#path.length) : rest)
  }

  /** Path of the base without a slash at its end. */
  get #path(): string {
    return this.#base === null ? '' : this.#base.pathname.replace(/\/$/, '')
  }
}
