import { isObject } from '@plat/core'
import { parsedOrUndefined } from '../../wire/message.ts'
import type { NamedServer } from './servers.ts'

/** Servers whose pages one page of the merged list has at most. */
export const MAX_SERVERS_OF_PAGE = 32

/** The rest of a merged list. Sealed as the cursor, so the caller can neither read nor change it. */
export interface ListCursor {
  readonly method: string
  /** Servers with more pages, each with the server's cursor; null: its first page. */
  readonly more: readonly ServerPage[]
  /** The last server of which a page was requested; servers with greater names follow. Null: none follows. */
  readonly after: string | null
}

export interface ServerPage {
  readonly server: string
  readonly cursor: string | null
}

/** Writes a cursor. */
export function cursorText({ method, more, after }: ListCursor): string {
  return JSON.stringify({ method, more: more.map(({ server, cursor }) => [server, cursor]), after })
}

/** Reads the cursor of this method's list; null: it is for another list. */
export function readCursor(text: string, method: string): ListCursor | null {
  const value = parsedOrUndefined(Buffer.from(text))
  if (!isObject(value) || value.method !== method || !Array.isArray(value.more)) return null
  const more = value.more.flatMap((page: unknown) => {
    const [server, cursor] = Array.isArray(page) ? page : []
    return typeof server === 'string' ? [{ server, cursor: typeof cursor === 'string' ? cursor : null }] : []
  })
  return { method, more, after: typeof value.after === 'string' ? value.after : null }
}

/** Returns the servers' pages that make up the next page of a list, and the cursor for what follows them. */
export function nextPages(
  servers: readonly NamedServer[],
  { method, more, after }: ListCursor,
): { readonly pages: readonly ServerPage[]; readonly rest: ListCursor } {
  const pages = more.slice(0, MAX_SERVERS_OF_PAGE)
  const following = after === null ? [] : servers.filter(({ name }) => name > after)
  const first = following.slice(0, MAX_SERVERS_OF_PAGE - pages.length)
  const last = first.at(-1)?.name ?? after
  return {
    pages: [...pages, ...first.map(({ name }) => ({ server: name, cursor: null }))],
    rest: { method, more: more.slice(pages.length), after: first.length < following.length ? last : null },
  }
}
