import { isObject, withoutTrailing } from '@plat/core'
import { Draft } from '../../shared/draft.ts'
import type { ConvertOptions } from '../mcp-servers.ts'
import { NOT_CONVERTED, type Provider, providerOf } from './providers.ts'

export interface ListedModel {
  readonly path: string
  readonly name: string
  readonly params: Readonly<Record<string, unknown>>
  readonly info: Readonly<Record<string, unknown>>
}

/** Keys of an endpoint in gateway.json, and what only a route may have. */
export interface Endpoint {
  readonly endpoint: Readonly<Record<string, unknown>>
  readonly route: Readonly<Record<string, unknown>>
  /** The provider and model that prices name. */
  readonly provider: string
  readonly model: string
}

/** Members that become part of an endpoint. */
const CONVERTED = new Set([
  ...['model', 'api_base', 'base_url', 'api_key', 'api_version', 'custom_llm_provider', 'rpm', 'tpm', 'max_tokens'],
  ...['aws_region_name', 'aws_access_key_id', 'aws_secret_access_key', 'aws_session_token'],
  ...['vertex_project', 'vertex_location', 'input_cost_per_token', 'output_cost_per_token', 'weight'],
  ...['cache_read_input_token_cost', 'cache_creation_input_token_cost'],
])

/** Converts `litellm_params`. Returns null, with a note, if plat has no such provider. */
export function endpointOf(listed: ListedModel, options: ConvertOptions): Endpoint | null {
  const { params } = listed
  const { notes } = options
  const at = (member: string) => `${listed.path}.litellm_params.${member}`
  const model = textOf(params.model)
  if (model === null) return refused(notes, at('model'), 'is missing')
  const base = textOf(params.api_base ?? params.base_url)
  const custom = textOf(params.custom_llm_provider)
  const found = providerOf(model, { custom, hasBase: base !== null })
  if ('unknown' in found)
    return refused(
      notes,
      at('model'),
      `plat has no provider ${JSON.stringify(found.unknown)}; set api_base of its OpenAI-compatible API`,
    )
  const upstream =
    base === null ? (found.provider.upstream ?? null) : baseOf(found.provider, literalOf(base, options.env))
  if (base !== null && upstream === null) return refused(notes, at('api_base'), `the variable ${base} is not set`)
  if (upstream === null && found.provider.needsBase === true) return refused(notes, at('api_base'), 'is missing')
  if (upstream !== null && !isBaseURL(upstream))
    return refused(notes, at('api_base'), 'must be an http or https URL without password, query and fragment')
  for (const member of Object.keys(params)) {
    if (!CONVERTED.has(member)) notes.add(at(member), NOT_CONVERTED[member] ?? 'plat has nothing like it')
  }
  if (params.weight !== undefined && !isWeight(params.weight))
    notes.add(at('weight'), `must be a whole number up to ${WEIGHT_MAX}; only their ratio matters`)
  const isWild = found.model.includes('*')
  return {
    endpoint: {
      ...keysOf(found.provider, upstream, params),
      ...(isWild ? {} : { model: found.model }),
      ...authOf(listed, found.provider, options),
      ...(isCount(params.rpm) && { requestsPerMinute: params.rpm }),
      ...(isWeight(params.weight) && { weight: params.weight }),
    },
    route: routeKeys(params),
    provider: found.provider.provider,
    model: found.model,
  }
}

/** The base URL of a provider for plat, from `api_base`. */
function baseOf({ end }: Provider, base: string | null): string | null {
  if (base === null || end === undefined) return base
  return withoutTrailing(base, '/').replace(...end)
}

function isBaseURL(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, username, password, search, hash } = new URL(text)
  return ['http:', 'https:'].includes(protocol) && username + password + search + hash === ''
}

function refused(notes: ConvertOptions['notes'], path: string, why: string): null {
  notes.add(path, why)
  return null
}

function keysOf({ provider, mode }: Provider, upstream: string | null, params: ListedModel['params']): object {
  const region = textOf(params.aws_region_name ?? params.vertex_location)
  const project = textOf(params.vertex_project)
  const version = textOf(params.api_version)
  return {
    ...(provider !== 'openai' && { provider }),
    ...(mode !== undefined && { mode }),
    ...(upstream !== null && { upstream }),
    ...(region !== null && { region }),
    ...(project !== null && { project }),
    ...(version !== null && { apiVersion: version }),
  }
}

function routeKeys({ tpm, max_tokens: maxTokens }: ListedModel['params']): Endpoint['route'] {
  return {
    ...(isCount(tpm) && { tokensPerMinute: tpm }),
    ...(isCount(maxTokens) && { maxTokensPerRequest: maxTokens }),
  }
}

/** Keys go into `.plat/secrets`, which gateway.json names by a path. */
function authOf({ name, params }: ListedModel, { provider }: Provider, options: ConvertOptions): object {
  const fileOf = (member: string): string | null => {
    const text = textOf(params[member])
    if (text === null) return null
    const variable = variableOf(text)
    const value = literalOf(text, options.env)
    const key = variable ?? `${routeName(name)}-${member.replaceAll('_', '-')}`
    const source = variable === null ? `${member} of ${name}` : `value of ${variable}`
    return Draft.secretPath(options.draft.secret({ name: 'litellm', key, value, source }))
  }
  const [id, secret, session] = ['aws_access_key_id', 'aws_secret_access_key', 'aws_session_token'].map(fileOf)
  if (id && secret) {
    const files = { accessKeyIdFile: id, secretAccessKeyFile: secret, ...(session && { sessionTokenFile: session }) }
    return { auth: { type: 'aws-sigv4', ...files } }
  }
  const apiKeyFile = fileOf('api_key')
  if (apiKeyFile !== null) return { apiKeyFile }
  const variable = USUAL_KEYS[provider]
  // LiteLLM reads the key of these providers from the environment where the entry names none.
  if (variable === undefined || params.api_base !== undefined) return {}
  const source = `value of ${variable}`
  const ref = options.draft.secret({ name: 'litellm', key: variable, value: options.env[variable] ?? null, source })
  return { apiKeyFile: Draft.secretPath(ref) }
}

const USUAL_KEYS: Readonly<Record<string, string>> = {
  openai: 'OPENAI_API_KEY',
  anthropic: 'ANTHROPIC_API_KEY',
  gemini: 'GEMINI_API_KEY',
}

const ENVIRON = 'os.environ/'

function variableOf(text: string): string | null {
  return text.startsWith(ENVIRON) ? text.slice(ENVIRON.length).replace(/[^A-Za-z0-9_]/g, '_') : null
}

/** A literal, or the value of `os.environ/<NAME>`; null: the variable is not set. */
function literalOf(text: string, env: NodeJS.ProcessEnv): string | null {
  return text.startsWith(ENVIRON) ? (env[text.slice(ENVIRON.length)] ?? null) : text
}

export function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

const WEIGHT_MAX = 1000

function isWeight(value: unknown): value is number {
  return value === 0 || (isCount(value) && value <= WEIGHT_MAX)
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0
}

const ROUTE_NAME_MAX_CHARS = 63

/** A name that a route can have: letters, digits, `.`, `_` and `-`. */
export function routeName(name: string): string {
  const letters = name.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[^A-Za-z0-9]+/, '')
  const safe = letters.startsWith('plat-') ? letters.slice('plat-'.length) : letters
  return (safe === '' ? 'model' : safe).slice(0, ROUTE_NAME_MAX_CHARS)
}

/** Prices per 1,000,000 tokens, from those per token. Null if there are none. */
export function pricesOf({ params, info }: ListedModel): Readonly<Record<string, string>> | null {
  const members = {
    input: 'input_cost_per_token',
    output: 'output_cost_per_token',
    cachedRead: 'cache_read_input_token_cost',
    cachedWrite: 'cache_creation_input_token_cost',
  }
  const prices = Object.entries(members).flatMap(([key, member]) => {
    const price = params[member] ?? info[member]
    return typeof price === 'number' && price >= 0 ? [[key, perMillion(price)]] : []
  })
  const all: Record<string, string> = Object.fromEntries(prices)
  return all.input === undefined || all.output === undefined ? null : all
}

const TOKENS = 1_000_000
const PRICE_DECIMALS = 6

/** A decimal string without an exponent. */
export function perMillion(price: number): string {
  const fixed = (price * TOKENS).toFixed(PRICE_DECIMALS)
  return withoutTrailing(withoutTrailing(fixed, '0'), '.')
}

export function isEntry(value: unknown): value is Readonly<Record<string, unknown>> {
  return isObject(value)
}
