import { isObject, parseStrict, reasonOf } from '@plat/core'
import type { Draft } from '../shared/draft.ts'
import { CommandError } from '../shared/output.ts'
import { withoutComments } from './jsonc.ts'
import type { Notes } from './notes.ts'

/** An MCP server in the configuration of a client. */
export interface FoundServer {
  /** Name of the MCPServer. */
  readonly name: string
  /** Path of its entry: `mcpServers["notes"]`. */
  readonly path: string
  readonly entry: Readonly<Record<string, unknown>>
}

/** Members of client configurations that hold servers. */
const LISTS = [['mcpServers'], ['servers'], ['mcp', 'servers']] as const

const NAME_MAX_CHARS = 63

/**
 * Finds the servers of a configuration of Claude Desktop, Claude Code (`.mcp.json`), Cursor or VS Code.
 * @throws CommandError if the text is not JSON or has no servers
 */
export function serversIn(text: string, file: string): readonly FoundServer[] {
  const root = parseJson(text, file)
  const taken = new Set<string>()
  for (const members of LISTS) {
    let list: unknown = root
    for (const member of members) list = isObject(list) ? list[member] : undefined
    if (!isObject(list)) continue
    return Object.entries(list).map(([name, entry]) => ({
      name: serverName(name, taken),
      path: `${members.join('.')}["${name.replace(/["\\]/g, '\\$&')}"]`,
      entry: isObject(entry) ? entry : {},
    }))
  }
  throw new CommandError(`${file}: no MCP servers: "mcpServers" and "servers" are missing`)
}

function parseJson(text: string, file: string): unknown {
  try {
    return parseStrict(withoutComments(text))
  } catch (error) {
    throw new CommandError(`${file}: is not JSON: ${reasonOf(error)}`)
  }
}

/** A name that an MCPServer can have: lower case, digits and hyphens, at most 63, not reserved. */
function serverName(name: string, taken: Set<string>): string {
  const letters = name.toLowerCase().replace(/[^a-z0-9]+/g, '-')
  const bare = letters.replace(/^-|-$/g, '').slice(0, NAME_MAX_CHARS - 3)
  const base = bare === '' || bare.startsWith('plat-') ? `server-${bare.slice('plat-'.length)}`.replace(/-$/, '') : bare
  let free = base
  for (let number = 2; taken.has(free); number++) free = `${base}-${number}`
  taken.add(free)
  return free
}

/** Where values come from: variables of this process. */
export interface ConvertOptions {
  readonly env: NodeJS.ProcessEnv
  readonly draft: Draft
  readonly notes: Notes
}

/** Adds an MCPServer for an entry. Secrets go into `.plat/secrets`. Returns false, with a note, if it cannot be converted. */
export function addServer({ name, path, entry }: FoundServer, options: ConvertOptions): boolean {
  const { draft, notes } = options
  if (draft.has('MCPServer', name)) {
    notes.add(path, `MCPServer default/${name} exists, and was not changed`)
    return false
  }
  const spec = specOf(name, entry, options)
  if (typeof spec === 'string') {
    notes.add(path, spec)
    return false
  }
  for (const member of Object.keys(entry)) {
    const why = KNOWN[member] ?? (member in KNOWN ? null : 'plat has nothing like it')
    if (why !== null && why !== undefined) notes.add(`${path}.${member}`, why)
  }
  const comment = `The MCP server ${JSON.stringify(name)}: agents reach it at /mcp and /mcp/${name}, and need the scope tools:${name}.`
  return draft.resource('MCPServer', name, { spec, comment })
}

/** Members that are converted (null), or why they are not. */
const KNOWN: Readonly<Record<string, string | null>> = {
  ...{ url: null, serverUrl: null, headers: null, command: null, args: null, env: null, cwd: null, type: null },
  ...{ transport: null, timeout: 'set timeoutSeconds of the MCPServer', disabled: null, envFile: null },
  autoApprove: 'write a rule of a ToolPolicy',
  alwaysAllow: 'write a rule of a ToolPolicy',
}

/** The spec of an MCPServer, or why there is none. */
function specOf(name: string, entry: FoundServer['entry'], options: ConvertOptions): object | string {
  if (entry.disabled === true) return 'it is disabled'
  if (entry.envFile !== undefined) return 'envFile: copy its variables into env'
  const type = entry.type ?? entry.transport
  const url = entry.url ?? entry.serverUrl
  if (type === 'sse') return 'the transport sse is not supported: use the server’s Streamable HTTP address'
  if (typeof url === 'string') return remoteSpec(name, url, entry, options)
  if (typeof entry.command === 'string') return stdioSpec(name, entry.command, entry, options)
  return 'it has neither url nor command'
}

function remoteSpec(
  name: string,
  text: string,
  { headers }: FoundServer['entry'],
  options: ConvertOptions,
): object | string {
  const expanded = expand(text, options.env)
  if (expanded === null || !URL.canParse(expanded)) return `url: ${unknownIn(text)}`
  const url = new URL(expanded)
  if (!['http:', 'https:'].includes(url.protocol)) return 'url: must be http or https'
  if (url.username !== '' || url.password !== '') return 'url: has a password; send it in a header'
  if (url.search !== '' || expanded !== text)
    return 'url: its query or a variable may hold a secret; send it in a header, and write the rest of the url'
  const auth = authOf(name, headers, options)
  return typeof auth === 'string' ? auth : { url: url.href, ...auth }
}

/** The credential of a server: at most one header. */
function authOf(name: string, headers: unknown, { draft, env }: ConvertOptions): object | string {
  const all = isObject(headers) ? Object.entries(headers) : []
  const [first, second] = all.map(([header, value]) => [header, String(value)] as const)
  if (first === undefined) return {}
  if (second !== undefined) return 'headers: plat presents one header to a server; this one needs several'
  const [header, text] = first
  const bearer = /^Bearer (.+)$/i.exec(header.toLowerCase() === 'authorization' ? text : '')?.[1]
  const source = `value of the header ${header} of ${name}`
  const secretRef = draft.secret({ name, key: 'token', value: expand(bearer ?? text, env), source })
  if (bearer !== undefined) return { auth: { type: 'bearerSecret', secretRef } }
  return { auth: { type: 'headerSecret', headerName: header, secretRef } }
}

/** A server that plat runs. Every variable is a secret: nothing says which one is not. */
function stdioSpec(
  name: string,
  command: string,
  { args, env: variables, cwd }: FoundServer['entry'],
  { draft, env }: ConvertOptions,
): object | string {
  const list = Array.isArray(args) ? args.map(String) : []
  const texts = [command, ...list, ...(typeof cwd === 'string' ? [cwd] : [])].map((one) => expand(one, env))
  if (texts.some((one) => one === null)) return `a variable is not set: ${unknownIn([command, ...list].join(' '))}`
  const secret = list.findIndex((one, index) => maySecret(one, list[index - 1]) || /\$\{/.test(one))
  if (secret >= 0) return `args[${secret}] may hold a secret, and resources are committed: pass it as a variable in env`
  const entries = isObject(variables) ? Object.entries(variables) : []
  const strange = entries.find(([key]) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(key))
  if (strange !== undefined) return `env: ${JSON.stringify(strange[0])} cannot be the name of a variable`
  const secrets = entries.map(([key, value]) => ({
    name: key,
    valueFrom: {
      secretKeyRef: draft.secret({
        name,
        key,
        value: expand(String(value), env),
        source: `variable ${key} of ${name}`,
      }),
    },
  }))
  return {
    stdio: {
      command,
      ...(list.length > 0 && { args: list }),
      ...(secrets.length > 0 && { env: secrets }),
      ...(typeof cwd === 'string' && { cwd }),
    },
  }
}

const SECRET_FLAG = /(?:key|token|secret|passw|credential|authorization|bearer)/i
const SECRET_TEXT = /^(?:sk-|ghp_|gho_|github_pat_|glpat-|xox[a-z]-|AKIA|eyJ)|:\/\/[^/\s@]*@|authorization|bearer/i

/** Whether an argument, or the flag before it, reads like a secret. */
function maySecret(text: string, before = ''): boolean {
  if (SECRET_TEXT.test(text)) return true
  if (text.includes('=')) return SECRET_FLAG.test(text.slice(0, text.indexOf('=')))
  return !text.startsWith('-') && before.startsWith('-') && !before.includes('=') && SECRET_FLAG.test(before)
}

const VARIABLE = /\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}$]*))?\}/g

/** Replaces `${NAME}`, `${NAME:-default}` and `${env:NAME}`. Returns null if a variable is not set, or is an input of VS Code. */
function expand(text: string, env: NodeJS.ProcessEnv): string | null {
  let isComplete = true
  const expanded = text.replace(VARIABLE, (_whole, name: string, fallback?: string) => {
    const value = env[name] ?? fallback
    if (value === undefined) isComplete = false
    return value ?? ''
  })
  return isComplete && !expanded.includes('${') ? expanded : null
}

/** Names the variables of a text. */
function unknownIn(text: string): string {
  const names = [...text.matchAll(/\$\{([^}:]*)/g)].map(([, name = '']) => name)
  return names.length === 0 ? 'cannot be read' : `set ${[...new Set(names)].join(', ')}`
}
