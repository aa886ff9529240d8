import { readFileSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { closest, isObject, parseStrict, reasonOf } from '@plat/core'
import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'
import { writePrivate } from './home.ts'
import { LOGIN_FLOWS } from './login-flows.ts'
import { CommandError, plain } from './output.ts'

const { Optional } = Type
const text = () => Type.String({ minLength: 1 })

/** A gateway by name: the directory of a `plat up`, or addresses and files with tokens, or the way to log in. */
const contextSchema = Type.Object(
  {
    dir: Optional(text()),
    adminURL: Optional(text()),
    gatewayURL: Optional(text()),
    identityURL: Optional(text()),
    tokenFile: Optional(text()),
    brokerTokenFile: Optional(text()),
    login: Optional(Type.Enum(LOGIN_FLOWS)),
  },
  { additionalProperties: false },
)

export type Context = Static<typeof contextSchema>

/** All contexts of a user. Tokens are not among them, only the files that hold them. */
export interface Contexts {
  /** Null: none is in use. */
  readonly current: string | null
  readonly contexts: Readonly<Record<string, Context>>
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/

/** Where contexts are stored: `PLAT_CONTEXTS`, else in the user's configuration folder. */
export function contextsFile(env: NodeJS.ProcessEnv): string {
  const folder = env.XDG_CONFIG_HOME ?? join(homedir(), '.config')
  return env.PLAT_CONTEXTS ?? join(folder, 'plat', 'contexts.json')
}

/** @throws CommandError if the file is damaged */
export async function readContexts(env: NodeJS.ProcessEnv): Promise<Contexts> {
  const file = contextsFile(env)
  const bytes = await readFile(file).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw new CommandError(`${file} cannot be read: ${reasonOf(error)}`)
  })
  if (bytes === null) return { current: null, contexts: {} }
  let value: unknown
  try {
    value = parseStrict(bytes)
  } catch (error) {
    throw new CommandError(`${file}: is not JSON: ${reasonOf(error)}; correct or remove it`)
  }
  const { current, contexts } = isObject(value) ? value : {}
  if (!isObject(contexts)) throw new CommandError(`${file}: "contexts" is missing; correct or remove the file`)
  const found: Record<string, Context> = {}
  for (const [name, one] of Object.entries(contexts)) {
    if (!Check(contextSchema, one))
      throw new CommandError(`${file}: the context ${plain(name)} is invalid; set it again`)
    found[name] = one
  }
  return { current: typeof current === 'string' ? current : null, contexts: found }
}

/** Files with tokens that contexts name; none if the file of the contexts is missing or damaged. */
export function tokenFilesOf(env: NodeJS.ProcessEnv): readonly string[] {
  let value: unknown
  try {
    value = parseStrict(readFileSync(contextsFile(env)))
  } catch {
    return []
  }
  const contexts = isObject(value) && isObject(value.contexts) ? Object.values(value.contexts) : []
  const valid = contexts.filter((one) => Check(contextSchema, one))
  return valid.flatMap(({ tokenFile, brokerTokenFile }) =>
    [tokenFile, brokerTokenFile].filter((file) => file !== undefined),
  )
}

/** Stores contexts, readable by their owner only. */
export async function writeContexts(env: NodeJS.ProcessEnv, contexts: Contexts): Promise<void> {
  const file = contextsFile(env)
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await writePrivate(file, `${JSON.stringify(contexts, null, 2)}\n`)
}

/** @throws CommandError with a suggestion */
export function contextNamed({ contexts }: Contexts, name: string): Context {
  const found = Object.hasOwn(contexts, name) ? contexts[name] : undefined
  if (found !== undefined) return found
  const known = Object.keys(contexts)
  const meant = closest(name, known)
  const hint = meant !== null ? `did you mean ${meant}?` : `there is ${known.join(', ') || 'none: plat context set'}`
  throw new CommandError(`no context ${JSON.stringify(plain(name))}; ${hint}`)
}

/**
 * Checks a context and makes its paths absolute.
 * @throws CommandError with exit code 2
 */
export function checkedContext(name: string, given: Context): Context {
  if (!NAME.test(name))
    throw new CommandError(
      `${JSON.stringify(plain(name))} cannot be the name of a context: use letters, digits, . _ -`,
      2,
    )
  for (const [key, url] of Object.entries({ '-admin-url': given.adminURL, '-gateway-url': given.gatewayURL })) {
    if (url !== undefined) checkURL(key, url)
  }
  if (given.identityURL !== undefined) checkURL('-identity-url', given.identityURL)
  const hasTokens = given.tokenFile !== undefined || given.brokerTokenFile !== undefined
  if (given.login !== undefined && given.tokenFile !== undefined)
    throw new CommandError('-login and -token-file exclude each other: people log in, or share the static token', 2)
  const hasURL = given.adminURL !== undefined || given.gatewayURL !== undefined || given.identityURL !== undefined
  if (given.dir === undefined && !(hasURL && (hasTokens || given.login !== undefined)))
    throw new CommandError(
      'name the directory with -dir, or an address (-admin-url) with -login browser, or with a file that has a token (-token-file)',
      2,
    )
  if (given.dir !== undefined && (hasURL || hasTokens))
    throw new CommandError('-dir names a directory that has addresses and tokens: leave out the other options', 2)
  const paths = ['dir', 'tokenFile', 'brokerTokenFile'] as const
  const placed = paths.flatMap((key) => (given[key] === undefined ? [] : [[key, resolve(given[key])]]))
  return { ...given, ...Object.fromEntries(placed) }
}

/** @throws CommandError with exit code 2 */
function checkURL(what: string, url: string): void {
  const parsed = URL.canParse(url) ? new URL(url) : null
  if (parsed === null || !['http:', 'https:'].includes(parsed.protocol))
    throw new CommandError(`${what}: ${plain(url)} must be a URL such as https://plat.example.com`, 2)
  if (parsed.username + parsed.password !== '')
    throw new CommandError(`${what}: must have no password; use -token-file`, 2)
}
