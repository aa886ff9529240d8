import { isObject, type JsonObject } from '@plat/core'

/** Content at a provider that a request names instead of sending it. */
export interface StoredContent {
  /** The member that names it. */
  readonly param: string
  readonly id: string
}

/** Members whose value is one ID, or a list of IDs, of files and of what holds files. */
const IDS: ReadonlySet<string> = new Set([
  ...['file_id', 'file_ids', 'input_file_id', 'container', 'container_id', 'vector_store_id', 'vector_store_ids'],
  ...['fileSearchStoreNames', 'file_search_store_names', 'datastore', 'ragCorpus', 'ragCorpora', 'ragFileIds'],
  ...['cachedContent', 'cached_content'],
])
/** Members with addresses, and those of Google's API, which also accept names of files. */
const ADDRESSES: ReadonlySet<string> = new Set(['url', 'uri', 'image_url', 'file_url'])
const FILE_ADDRESSES: ReadonlySet<string> = new Set(['file_uri', 'fileUri'])
/** Addresses that a provider reads with credentials of the account: objects of its cloud, and files of Google's API. */
const STORED = /^(?:gs|s3|oss):|^https?:\/\/[^/?#]*\bgenerativelanguage\.googleapis\.com\b/i
const PUBLIC = /^https?:\/\//i
/** Texts that Qwen replaces by the files whose IDs they are. */
const TEXTS: ReadonlySet<string> = new Set(['content', 'text'])
const FILE_TEXT = /^fileid:\/\//i
/**
 * Members with content of the agent or of earlier responses, in which a name has no effect at any provider: schemas, metadata, arguments and
 * results of functions, and sources of a text.
 */
const OPAQUE: ReadonlySet<string> = new Set([
  ...['parameters', 'input_schema', 'schema', 'json_schema', 'metadata', 'functionCall', 'functionDeclarations'],
  ...['annotations', 'citations'],
])
/** Blocks of Anthropic's API whose `input` has the arguments of a tool. */
const TOOL_USES: ReadonlySet<unknown> = new Set(['tool_use', 'server_tool_use', 'mcp_tool_use'])

/**
 * Returns what a request names of the content that the provider stores: files, containers, vector stores, and addresses in its cloud. What it
 * names several times is there once.
 */
export function storedContent(body: unknown): readonly StoredContent[] {
  const found: Found = new Map()
  const open: object[] = isObject(body) ? [body] : []
  for (let holder = open.pop(); holder !== undefined; holder = open.pop()) {
    if (Array.isArray(holder)) addObjects(holder, open)
    else if (isObject(holder)) addMembers(holder, { isRequest: holder === body, open, found })
  }
  return [...found.values()]
}

/** By ID. */
type Found = Map<string, StoredContent>

function add(found: Found, param: string, id: string): void {
  if (id !== '' && !found.has(id)) found.set(id, { param, id })
}

function addObjects(list: readonly unknown[], open: object[]): void {
  for (const value of list) if (typeof value === 'object' && value !== null) open.push(value)
}

interface Search {
  readonly isRequest: boolean
  /** Objects and lists that are still to be searched. */
  readonly open: object[]
  readonly found: Found
}

/** A loop over names makes no list of members, which would cost more than the parser. */
function addMembers(holder: JsonObject, { isRequest, open, found }: Search): void {
  for (const name in holder) {
    const value = holder[name]
    if (isRequest && name.includes('[')) addField(name, value, { open, found })
    else if (typeof value === 'string') {
      if (value !== '' && isName(name, value)) add(found, name, value)
    } else if (typeof value === 'object' && value !== null && !isOpaque(name, holder, isRequest)) {
      if (IDS.has(name)) addIds(name, value, found)
      open.push(value)
    }
  }
}

/** A field of a form: `images[][file_id]` is the member of an object to a provider, and text here. */
function addField(name: string, value: unknown, { open, found }: Pick<Search, 'open' | 'found'>): void {
  const members = name.split(/[[\]]+/)
  for (const one of Array.isArray(value) ? value : [value]) {
    if (typeof one === 'object' && one !== null) open.push(one)
    else if (typeof one === 'string' && one !== '' && members.some((member) => isName(member, one)))
      add(found, name, one)
  }
}

function isName(name: string, value: string): boolean {
  if (FILE_ADDRESSES.has(name)) return !PUBLIC.test(value) || STORED.test(value)
  // An expression that skips spaces would try each of them as the beginning of what follows.
  if (TEXTS.has(name)) return FILE_TEXT.test(value.trimStart())
  return IDS.has(name) || (ADDRESSES.has(name) && STORED.test(value.trimStart()))
}

function isOpaque(name: string, holder: JsonObject, isRequest: boolean): boolean {
  if (OPAQUE.has(name)) return true
  // Results of functions in Google's API, whose files are in `parts`.
  if (name === 'response') return !isRequest
  return name === 'input' && !isRequest && TOOL_USES.has(holder.type)
}

/** A list of IDs, or an object that has one: `container: {id}`. */
function addIds(name: string, value: object, found: Found): void {
  if (Array.isArray(value)) {
    for (const id of value) if (typeof id === 'string') add(found, name, id)
  } else if ('id' in value && typeof value.id === 'string') add(found, name, value.id)
}
