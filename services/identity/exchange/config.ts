import { type FileWatch, watchFile } from '@plat/config'
import { type Clock, closest, isObject, type JsonObject, parseStrict } from '@plat/core'
import type { Log } from '@plat/process'
import type { CredentialProvider, ProviderParams } from './provider.ts'

/** docs/spec/broker-api.md, "Limits": lifetime of an exchanged token when the audience says nothing, in seconds. */
const DEFAULT_MAX_TTL_SECONDS = 300
/** How often the file is looked at, in milliseconds. */
const RELOAD_EVERY_MS = 10_000
/** The providers that the contract names. */
const PROVIDERS: readonly string[] = ['aws-sts', 'gcp-sts', 'azure-entra']

/** One audience of the exchange configuration (docs/spec/broker-api.md, "Exchange configuration file"). */
export interface Audience {
  readonly maxTTLSeconds: number
  readonly allowedScopes: ReadonlySet<string>
  /** Empty: no session may exchange for the audience. */
  readonly allowedNamespaces: ReadonlySet<string>
  /** Null: the result is a down-scoped session token. */
  readonly provider: CredentialProvider | null
  readonly params: ProviderParams
}

export type Audiences = ReadonlyMap<string, Audience>

export interface ExchangeConfig {
  /** From the last valid version of the file. */
  audience(name: string): Audience | null
  /** All of them, likewise. */
  audiences(): Audiences
  close(): void
}

export interface ExchangeConfigOptions {
  /** Empty: there is no file, and no audience. */
  readonly path: string
  readonly providers: readonly CredentialProvider[]
  readonly clock: Clock
  readonly log: Log
}

/** Reads the file and follows it. Rejects when it is wrong at the start; later the audiences stay as they were. */
export async function openExchangeConfig({
  path,
  providers,
  clock,
  log,
}: ExchangeConfigOptions): Promise<ExchangeConfig> {
  let audiences: Audiences = new Map()
  let failure: unknown = null
  if (path === '') return { audience: () => null, audiences: () => audiences, close: () => {} }
  const watch: FileWatch = watchFile({
    path,
    everyMs: RELOAD_EVERY_MS,
    clock,
    onBytes(bytes) {
      if (bytes === null) throw new Error(`-exchange-config: ${path} is missing`)
      audiences = readExchangeConfig(bytes, path, providers)
      log.info({ path, audiences: audiences.size }, 'exchange configuration read')
    },
    onError(error) {
      failure = error
      log.warn({ path, error: String(error) }, 'exchange configuration could not be reloaded, the old one stays in use')
    },
  })
  await watch.check()
  if (failure !== null) {
    watch.stop()
    throw failure
  }
  return {
    audience: (name) => audiences.get(name) ?? null,
    audiences: () => audiences,
    close: () => watch.stop(),
  }
}

/** Decodes the file strictly. Throws every problem, one a line, with the path of its key. */
export function readExchangeConfig(
  bytes: Uint8Array,
  path: string,
  providers: readonly CredentialProvider[],
): Audiences {
  const reader = new ConfigReader(providers)
  const audiences = reader.read(bytes)
  if (reader.problems.length === 0) return audiences
  throw new Error(reader.problems.map((problem) => `-exchange-config: ${path}: ${problem}`).join('\n'))
}

class ConfigReader {
  readonly problems: string[] = []
  readonly #providers: readonly CredentialProvider[]

  constructor(providers: readonly CredentialProvider[]) {
    this.#providers = providers
  }

  read(bytes: Uint8Array): Audiences {
    const audiences = new Map<string, Audience>()
    let file: unknown
    try {
      file = parseStrict(bytes)
    } catch (error) {
      this.problems.push(error instanceof Error ? error.message : 'unreadable')
      return audiences
    }
    const top = this.#object(file, 'the file', ['audiences'])
    if (top === null) return audiences
    if (!isObject(top.audiences)) {
      this.problems.push('audiences: must be an object')
      return audiences
    }
    for (const [name, value] of Object.entries(top.audiences)) {
      if (name === '') this.problems.push('audiences: a name is empty')
      const audience = this.#audience(value, `audiences[${JSON.stringify(name)}]`)
      if (audience !== null) audiences.set(name, audience)
    }
    return audiences
  }

  #audience(value: unknown, where: string): Audience | null {
    const keys = ['maxTTLSeconds', 'allowedScopes', 'allowedNamespaces', 'provider', 'params']
    const members = this.#object(value, where, keys)
    if (members === null) return null
    const { params = {} } = members
    if (!isObject(params)) this.problems.push(`${where}.params: must be an object`)
    const known = isObject(params) ? params : {}
    const provider = this.#provider(members.provider, known, where)
    if (provider === null && members.provider === undefined && Object.keys(known).length > 0) {
      this.problems.push(`${where}.params: needs a provider`)
    }
    return {
      maxTTLSeconds: this.#seconds(members.maxTTLSeconds, `${where}.maxTTLSeconds`),
      allowedScopes: this.#texts(members.allowedScopes, `${where}.allowedScopes`),
      allowedNamespaces: this.#texts(members.allowedNamespaces, `${where}.allowedNamespaces`),
      provider,
      params: known,
    }
  }

  #provider(name: unknown, params: JsonObject, where: string): CredentialProvider | null {
    if (name === undefined) return null
    const found = this.#providers.find((provider) => provider.name === name)
    if (found === undefined) {
      const known = PROVIDERS.some((each) => each === name)
      const why = known
        ? 'needs -federation-key, which signs what clouds take'
        : `must be one of ${PROVIDERS.join(', ')}`
      this.problems.push(`${where}.provider ${JSON.stringify(name)}: ${why}`)
      return null
    }
    for (const problem of found.problems(params)) this.problems.push(`${where}.params.${problem}`)
    return found
  }

  #seconds(value: unknown, where: string): number {
    if (value === undefined) return DEFAULT_MAX_TTL_SECONDS
    if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value
    this.problems.push(`${where}: must be a whole number above 0`)
    return DEFAULT_MAX_TTL_SECONDS
  }

  #texts(value: unknown, where: string): ReadonlySet<string> {
    if (value === undefined) return new Set()
    if (Array.isArray(value) && value.every((entry) => typeof entry === 'string' && /^[^\s]+$/.test(entry))) {
      return new Set(value)
    }
    this.problems.push(`${where}: must be a list of texts without white space`)
    return new Set()
  }

  #object(value: unknown, where: string, known: readonly string[]): JsonObject | null {
    if (!isObject(value)) {
      this.problems.push(`${where}: must be an object`)
      return null
    }
    for (const name of Object.keys(value)) {
      if (known.includes(name)) continue
      const meant = closest(name, known)
      this.problems.push(`${where}: unknown key "${name}"${meant === null ? '' : `; did you mean "${meant}"?`}`)
    }
    return value
  }
}
