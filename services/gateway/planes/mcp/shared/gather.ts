import { member } from '@plat/core'
import type { Log } from '@plat/process'
import { ALL_SERVERS, type Call, type Denial, deny, isDenial, type Reply } from '../../../call/index.ts'
import type { McpRequest } from '../message.ts'
import { bindingOf, type Sealer } from '../seal/seal.ts'
import { eraMembers, type ResultMembers, resultReply } from './answers.ts'
import type { CollectedMessage } from './collect.ts'
import { cursorText, type ListCursor, nextPages, readCursor, type ServerPage } from './cursor.ts'
import { type ListKind, type NamedPage, namedPage } from './lists.ts'
import { type Naming, withServer } from './naming.ts'
import type { CallersServers } from './servers.ts'

/** Bytes of a merged page from which on further servers are left for the next one. */
const MAX_PAGE_BYTES = 8 * 1024 * 1024
/** Longest cursor of a server, in characters: the caller sends the cursors of many servers back in one. */
const MAX_CURSOR_CHARACTERS = 8 * 1024

/** Member of a list's `_meta` with the servers that are not part of it. */
const LEFT_OUT_MEMBER = 'plat.dev/left-out'

/** JSON-RPC "method not found": the server has no such list. */
const METHOD_NOT_FOUND = -32601

/** Requests one page of a list from a server. Resolves to null if the server has no such list. Never rejects. */
export type LoadPage = (page: ServerPage & { readonly kind: ListKind }) => Promise<CollectedMessage | Denial | null>

/** Dependencies of lists. */
export interface GatherParts {
  readonly servers: CallersServers
  readonly naming: Naming
  readonly sealer: Sealer
  readonly log: Log
  /** Counts a server that a list is without. */
  leftOut(code: Denial['code']): void
}

/** A list to merge. */
export interface ListCall {
  readonly call: Call<'identity' | 'target'>
  readonly request: McpRequest
  readonly kind: ListKind
  readonly load: LoadPage
  /** Called for each page of tools. */
  shortened?(server: string, names: NamedPage['shortened']): void
}

/** The result for one server's page. */
interface Fetched {
  readonly page: ServerPage
  readonly named: NamedPage | Denial | null
}

/** Merges one page of the lists of a caller's servers. A server that fails or takes too long is left out, and the result says so. */
export async function gatherList(parts: GatherParts, list: ListCall): Promise<Reply | Denial> {
  const { call, request, kind } = list
  const { identity } = call.facts
  const [opened] = request.opened
  const cursor = opened === undefined ? first(kind.method) : readCursor(opened.id, kind.method)
  if (cursor === null) return deny('not_found', 'no such cursor')
  const servers = parts.servers.of(call.snapshot, identity)
  const { pages, rest } = nextPages(servers, cursor)
  const fetched = await Promise.all(pages.map((page) => fetchNamed(parts, list, page)))
  const merged = merge(fetched, rest)
  for (const left of merged.leftOut) report(parts, left, kind)
  const seal = (text: string) => {
    const binding = bindingOf('mcp-cursor', identity, ALL_SERVERS)
    return withServer(parts.sealer.seal(binding, { id: text, target: call.facts.target.key }), ALL_SERVERS)
  }
  return resultReply(request, resultOf(list, merged, seal))
}

const first = (method: string): ListCursor => ({ method, more: [], after: '' })

async function fetchNamed(
  { servers, naming }: GatherParts,
  { call, kind, load, shortened }: ListCall,
  page: ServerPage,
): Promise<Fetched> {
  const { server } = page
  const known = servers.of(call.snapshot, call.facts.identity).find(({ name }) => name === server)
  const prefix = known?.prefix ?? null
  if (prefix === null) {
    const reason = `names of ${server} cannot be distinguished from those of another server`
    return { page, named: known === undefined ? null : deny('ambiguous_server', reason) }
  }
  const message = await load({ ...page, kind })
  if (message === null || isDenial(message)) return { page, named: message }
  const named = usable(server, message) ?? (await namedPage(message, { kind, naming, prefix }))
  if (named === 'none') return { page, named: null }
  if (!isDenial(named)) shortened?.(server, named.shortened)
  return { page, named }
}

/** Returns null for a page of entries, `none` if the server has no such list, and a denial for another error. */
function usable(server: string, { value }: CollectedMessage): Denial | 'none' | null {
  if (value.error !== undefined)
    return member(value.error, 'code') === METHOD_NOT_FOUND
      ? 'none'
      : deny('upstream_error', `${server} refused the request`)
  const next = member(value.result, 'nextCursor')
  if (typeof next !== 'string' || next.length <= MAX_CURSOR_CHARACTERS) return null
  return deny('upstream_error', `${server} sent a cursor of more than ${MAX_CURSOR_CHARACTERS} characters`)
}

interface LeftOut {
  readonly server: string
  readonly denial: Denial
}

interface Merged {
  readonly entries: readonly Uint8Array[]
  readonly leftOut: readonly LeftOut[]
  readonly rest: ListCursor
}

/** Pages that do not fit are requested again for the next page, which always has room for one. */
function merge(fetched: readonly Fetched[], rest: ListCursor): Merged {
  const entries: Uint8Array[] = []
  const leftOut: LeftOut[] = []
  const more: ServerPage[] = []
  let bytes = 0
  for (const { page, named } of fetched) {
    if (named === null) continue
    if (isDenial(named)) leftOut.push({ server: page.server, denial: named })
    else if (bytes > 0 && bytes + named.bytes > MAX_PAGE_BYTES) more.push(page)
    else {
      bytes += named.bytes
      for (const entry of named.entries) entries.push(entry)
      if (named.next !== null) more.push({ server: page.server, cursor: named.next })
    }
  }
  return { entries, leftOut, rest: { ...rest, more: [...more, ...rest.more] } }
}

function report({ log, leftOut }: GatherParts, { server, denial }: LeftOut, { method }: ListKind): void {
  leftOut(denial.code)
  log.warn({ server, method, code: denial.code, reason: denial.reason }, 'a list is without this server')
}

function resultOf(
  { request, kind }: ListCall,
  { entries, leftOut, rest }: Merged,
  seal: (text: string) => string,
): string {
  const members: ResultMembers = eraMembers(request, true)
  if (rest.more.length > 0 || rest.after !== null) members.nextCursor = seal(cursorText(rest))
  if (leftOut.length > 0) {
    const servers = leftOut.map(({ server, denial }) => ({ server, error: denial.code, reason: denial.reason }))
    members._meta = { ...members._meta, [LEFT_OUT_MEMBER]: servers }
  }
  const others = JSON.stringify(members).slice(1)
  const list = Buffer.concat(entries.flatMap((entry, at) => (at === 0 ? [entry] : [COMMA, entry]))).toString('utf8')
  return `{${JSON.stringify(kind.entries)}:[${list}]${others === '}' ? '' : ','}${others}`
}

const COMMA = Buffer.from(',')
