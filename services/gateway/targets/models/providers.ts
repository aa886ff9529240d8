import { withoutTrailing } from '@plat/core'
import { placeContradictions } from '@plat/resources/regions'
import type { ModelEndpointEntry } from '@plat/resources/rendered'
import { dnsSuffix } from './credentials/aws.ts'
import { authTypeOf } from './credentials/source.ts'

/** In which words an endpoint is asked and answers; `openai` stands for those of the caller, whatever they are. */
export type Speaks = 'openai' | 'anthropic' | 'anthropic-bedrock' | 'anthropic-vertex' | 'converse' | 'gemini'

/** One way to speak to a provider. */
interface Variant {
  readonly speaks: Speaks
  /** Endpoints of OpenAI's or Anthropic's API that it serves. */
  readonly methods: ReadonlySet<string>
  /** The header that carries a key, and what stands before the key. */
  readonly keyHeader: readonly [name: string, prefix: string]
  /** Whose keys and base URLs it has, beside those of its provider. */
  readonly cloud: 'aws' | 'gcp' | 'oci' | null
}

const BEARER = ['authorization', 'Bearer '] as const
const OPENAI = new Set(['chat/completions', 'completions', 'responses', 'embeddings', 'models'])
const CHAT = new Set(['chat/completions'])
const CHAT_AND_RESPONSES = new Set(['chat/completions', 'responses'])
const ANTHROPIC = new Set(['messages', 'messages/count_tokens', 'models', 'chat/completions'])
const ANTHROPIC_IN_CLOUD = new Set(['messages', 'chat/completions'])

const plain: Variant = { speaks: 'openai', methods: OPENAI, keyHeader: BEARER, cloud: null }
const azure: Variant = { ...plain, keyHeader: ['api-key', ''] }
const gemini: Variant = { speaks: 'gemini', methods: CHAT, keyHeader: ['x-goog-api-key', ''], cloud: null }

/** Every provider with its modes (docs/spec/gateway.md, `provider` and `mode`), the default first; `''`: it has none. */
const PROVIDERS: Readonly<Record<string, Readonly<Record<string, Variant>>>> = {
  openai: { '': plain },
  'azure-openai': { v1: azure, deployments: azure },
  anthropic: {
    direct: { speaks: 'anthropic', methods: ANTHROPIC, keyHeader: ['x-api-key', ''], cloud: null },
    vertex: { speaks: 'anthropic-vertex', methods: ANTHROPIC_IN_CLOUD, keyHeader: BEARER, cloud: 'gcp' },
    bedrock: { speaks: 'anthropic-bedrock', methods: ANTHROPIC_IN_CLOUD, keyHeader: BEARER, cloud: 'aws' },
  },
  bedrock: {
    converse: { speaks: 'converse', methods: CHAT, keyHeader: BEARER, cloud: 'aws' },
    openai: { ...plain, methods: CHAT, cloud: 'aws' },
  },
  vertex: { native: { ...gemini, keyHeader: BEARER, cloud: 'gcp' }, openai: { ...plain, methods: CHAT, cloud: 'gcp' } },
  gemini: { '': gemini },
  'oci-genai': { '': { ...plain, methods: CHAT_AND_RESPONSES, cloud: 'oci' } },
}

/** Names of all providers that routes can have. */
export const PROVIDER_NAMES: readonly string[] = Object.keys(PROVIDERS)

/** Versions of APIs where a route names none (docs/spec/gateway.md, `apiVersion`). */
const API_VERSIONS: Readonly<Record<string, string>> = { anthropic: '2023-06-01', 'azure-openai': '2024-10-21' }

/** What of an endpoint depends on its provider. */
export interface Wire {
  readonly provider: string
  readonly speaks: Speaks
  readonly methods: ReadonlySet<string>
  readonly keyHeader: readonly [name: string, prefix: string]
  /** Sent with every request, over what the caller sent. */
  readonly headers: Readonly<Record<string, string>>
  /** What a request goes without when neither caller nor route say. */
  readonly defaults: Readonly<Record<string, string>>
  /** The path names the model. */
  readonly perModel: boolean
  /** Path and query below the base URL. */
  pathOf(method: string, model: string | null, stream: boolean): string
}

/** What the configuration says of clouds in general. */
export interface Clouds {
  /** Where an entry names none. */
  readonly awsRegion: string
  /** `cloudCredentials.aws.partitionDNSSuffix`; empty: as the region has it. */
  readonly awsSuffix: string
}

/** Paths of a base URL that say nothing: what follows depends on provider and mode, as in the `/v1` of an Agent's bare host. */
const SILENT_PATHS: ReadonlySet<string> = new Set(['/', '/v1'])
const AZURE_BASES: ReadonlySet<string> = new Set(['/', '/v1', '/openai', '/openai/v1'])

/** The region of an endpoint; one of AWS may stand in the configuration or in the environment. */
export function regionOf(entry: ModelEndpointEntry, { awsRegion }: Clouds): string {
  return entry.region || (variantOf(entry)?.cloud === 'aws' ? awsRegion : '')
}

/** The base URL without a slash at its end. Where the provider has a usual path, its host is enough, and none at all in a cloud. */
export function baseOf(entry: ModelEndpointEntry, clouds: Clouds): string {
  const base = withoutTrailing(entry.upstream, '/')
  const usual = usualBase(entry, clouds)
  if (base === '') return usual
  const { origin, pathname } = new URL(base)
  if (entry.provider === 'azure-openai')
    return AZURE_BASES.has(pathname) ? origin + (entry.mode === 'deployments' ? '' : '/openai/v1') : base
  if (usual === '' || !SILENT_PATHS.has(pathname)) return base
  return origin + withoutTrailing(new URL(usual).pathname, '/')
}

/** Empty: nobody can know it. */
function usualBase(entry: ModelEndpointEntry, clouds: Clouds): string {
  const { provider = 'openai', mode, project = '' } = entry
  const region = regionOf(entry, clouds)
  switch (variantOf(entry)?.cloud) {
    case 'aws': {
      const host = `https://bedrock-runtime.${region}.${dnsSuffix(region, clouds.awsSuffix)}`
      return provider === 'bedrock' && mode === 'openai' ? `${host}/openai/v1` : host
    }
    case 'gcp': {
      const place = `projects/${project}/locations/${region}`
      const below =
        mode === 'openai' ? 'endpoints/openapi' : `publishers/${provider === 'vertex' ? 'google' : provider}`
      return `https://${region === 'global' ? '' : `${region}-`}aiplatform.googleapis.com/v1/${place}/${below}`
    }
    case 'oci':
      return `https://inference.generativeai.${region}.oci.oraclecloud.com/openai/v1`
    default:
      if (provider === 'gemini') return 'https://generativelanguage.googleapis.com/v1beta'
      return provider === 'anthropic' ? 'https://api.anthropic.com/v1' : ''
  }
}

/** Undefined: there is no such provider, or it has no such mode. */
function variantOf({ provider = 'openai', mode = '' }: ModelEndpointEntry): Variant | undefined {
  const modes = Object.hasOwn(PROVIDERS, provider) ? PROVIDERS[provider] : undefined
  if (modes === undefined) return undefined
  return mode === '' ? Object.values(modes)[0] : Object.hasOwn(modes, mode) ? modes[mode] : undefined
}

/** Only for an entry without faults: of any other it throws. */
export function wireOf(entry: ModelEndpointEntry): Wire {
  const { provider = 'openai', mode, apiVersion, auth } = entry
  const variant = variantOf(entry)
  if (variant === undefined) throw new Error(`the provider ${provider} has no mode ${mode}`)
  const { speaks, methods, keyHeader } = variant
  const version = apiVersion || API_VERSIONS[provider] || ''
  const isAnthropic = speaks === 'anthropic'
  const ofModel = provider === 'azure-openai' && mode === 'deployments' ? inDeployment(version) : MODEL_PATHS[speaks]
  return {
    provider,
    speaks,
    methods,
    keyHeader: auth?.type === 'bearer' ? BEARER : keyHeader,
    headers: isAnthropic && apiVersion ? { 'anthropic-version': apiVersion } : {},
    defaults: isAnthropic ? { 'anthropic-version': version } : {},
    perModel: ofModel !== undefined,
    pathOf: ofModel ?? ((method) => (isAnthropic && method === 'chat/completions' ? '/messages' : `/${method}`)),
  }
}

function inDeployment(version: string): Wire['pathOf'] {
  return (method, model) =>
    method.startsWith('models')
      ? `/openai/${method}?api-version=${version}`
      : `/openai/deployments/${encodeURIComponent(model ?? '')}/${method}?api-version=${version}`
}

/** Where the path names the model, and whether it streams. */
const MODEL_PATHS: Readonly<Partial<Record<Speaks, Wire['pathOf']>>> = {
  converse: (_, model, stream) => `/model/${named(model)}/${stream ? 'converse-stream' : 'converse'}`,
  'anthropic-bedrock': (_, model, stream) =>
    `/model/${named(model)}/${stream ? 'invoke-with-response-stream' : 'invoke'}`,
  gemini: (_, model, stream) =>
    `/models/${named(model)}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  'anthropic-vertex': (_, model, stream) => `/models/${named(model)}:${stream ? 'streamRawPredict' : 'rawPredict'}`,
}

/** A name from the caller: it must not lead anywhere else. `@` is what versions of models are written with at Google. */
function named(model: string | null): string {
  return encodeURIComponent(model ?? '').replace(/%40/g, '@')
}

export const NOT_BUILT = 'not built yet in this version'

/** What is wrong with an endpoint beside its schema, by the name of the key. */
export function endpointFaults(entry: ModelEndpointEntry): readonly (readonly [key: string, message: string])[] {
  const { provider: name = 'openai', apiVersion = '' } = entry
  if (!Object.hasOwn(PROVIDERS, name)) return [['provider', NOT_BUILT]]
  const variant = variantOf(entry)
  if (variant === undefined) return [['mode', `is no variant of the provider ${name}`], ...keyFaults(entry)]
  const faults: [string, string][] = []
  if (entry.upstream === '' && variant.cloud === null && usualBase(entry, NO_CLOUDS) === '')
    faults.push(['upstream', 'is required'])
  if (apiVersion !== '' && !(variant.speaks === 'anthropic' || name === 'azure-openai'))
    faults.push(['apiVersion', `has no meaning for the provider ${name}`])
  return [
    ...faults,
    ...placeFaults(entry, variant),
    ...placeContradictions(entry, entry.model || null),
    ...authFaults(entry, variant),
    ...keyFaults(entry),
  ]
}

const NO_CLOUDS: Clouds = { awsRegion: '', awsSuffix: '' }

/** Which keys say where in a cloud an endpoint is. */
const PLACES: Readonly<Record<string, readonly ('region' | 'project')[]>> = {
  aws: ['region'],
  azure: ['region'],
  gcp: ['region', 'project'],
  oci: ['region', 'project'],
}

function placeFaults(entry: ModelEndpointEntry, { cloud }: Variant): [string, string][] {
  const { provider: name = 'openai' } = entry
  const place = name === 'azure-openai' ? 'azure' : (cloud ?? '')
  const faults: [string, string][] = []
  for (const key of ['region', 'project'] as const) {
    const isMeant = PLACES[place]?.includes(key) ?? false
    const isSet = (entry[key] ?? '') !== ''
    if (isSet && !isMeant) faults.push([key, `has no meaning for the provider ${name}`])
    const isNeeded = cloud === 'gcp' || (cloud === 'oci' && key === 'region' && entry.upstream === '')
    if (!isSet && isNeeded) faults.push([key, `is required with provider ${name}`])
  }
  return faults
}

/** Whose credentials a type of `auth` is about. */
const CLOUD_AUTH: Readonly<Record<string, string>> = { 'aws-sigv4': 'aws', gcp: 'gcp', oci: 'oci' }

function authFaults(entry: ModelEndpointEntry, { cloud }: Variant): [string, string][] {
  const { provider: name = 'openai' } = entry
  const type = authTypeOf(entry)
  const isMeant = type === 'azure-entra' ? name === 'azure-openai' : (CLOUD_AUTH[type] ?? cloud) === cloud
  return isMeant ? [] : [['auth.type', `has no meaning for the provider ${name}`]]
}

/** What a type of `auth` needs beside it. */
function keyFaults(entry: ModelEndpointEntry): [string, string][] {
  const { apiKeyFile = '', auth = {} } = entry
  const { tokenFile = '', tokenEnv = '', accessKeyIdFile = '', secretAccessKeyFile = '' } = auth
  const type = authTypeOf(entry)
  const faults: [string, string][] = []
  if (type === 'api-key' && apiKeyFile === '') faults.push(['apiKeyFile', 'is required with auth.type api-key'])
  if (type === 'bearer' && tokenFile === '' && tokenEnv === '' && apiKeyFile === '')
    faults.push(['auth.tokenFile', 'this, auth.tokenEnv or apiKeyFile is required with auth.type bearer'])
  if (type === 'none' && apiKeyFile !== '') faults.push(['apiKeyFile', 'is presented to nobody with auth.type none'])
  if ((accessKeyIdFile === '') !== (secretAccessKeyFile === ''))
    faults.push(['auth.secretAccessKeyFile', 'and auth.accessKeyIdFile go together'])
  return faults
}
