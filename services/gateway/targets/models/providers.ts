import { withoutTrailing } from '@plat/core'
import { awsDomain } from '@plat/http'
import { placeContradictions } from '@plat/resources/regions'
import type { ModelEndpointEntry } from '@plat/resources/rendered'
import { authTypeOf } from './credentials/source.ts'

/** Wire format of an endpoint. */
export type Speaks =
  | 'openai'
  | 'anthropic'
  | 'anthropic-bedrock'
  | 'anthropic-vertex'
  | 'converse'
  | 'gemini'
  | 'gemini-vertex'

/** One API of a provider. */
interface Variant {
  readonly speaks: Speaks
  /** Endpoints of OpenAI's or Anthropic's API that it supports itself. */
  readonly native: ReadonlySet<string>
  /** Endpoints that it supports by translation. */
  readonly translated: readonly string[]
  /** Header of the key, and its prefix. */
  readonly keyHeader: readonly [name: string, prefix: string]
  /** Cloud of its credentials and base URLs, or null. */
  readonly cloud: 'aws' | 'gcp' | 'oci' | null
}

const BEARER = ['authorization', 'Bearer '] as const
/** Images and sound, which are not translated. */
const MEDIA = ['images/generations', 'images/edits', 'audio/speech', 'audio/transcriptions', 'audio/translations']
/** Files of the account, which have owners. */
const FILES = ['files', 'files/list', 'files/get', 'files/content', 'files/delete']
/** Batches of the account, which have owners. */
const BATCHES = ['batches', 'batches/list', 'batches/get', 'batches/cancel']
const MESSAGE_BATCHES = ['', '/list', '/get', '/cancel', '/delete', '/results'].map((name) => `messages/batches${name}`)
const OPENAI = new Set(['chat/completions', 'completions', 'responses', 'embeddings', 'models', ...MEDIA, ...FILES])
const CHAT = new Set(['chat/completions'])
const NONE: ReadonlySet<string> = new Set()
/** Endpoints of chats, each of which can be translated to every other one. */
const CHATS = ['chat/completions', 'responses', 'messages', 'generateContent']

/** Endpoints of embeddings in Google's API. */
const GOOGLE_EMBEDDINGS = ['embedContent', 'batchEmbedContents']
const EMBEDDINGS = ['embeddings', ...GOOGLE_EMBEDDINGS]

const plain: Variant = {
  speaks: 'openai',
  native: new Set([...OPENAI, ...BATCHES]),
  translated: [...CHATS, ...GOOGLE_EMBEDDINGS],
  keyHeader: BEARER,
  cloud: null,
}
const chatsOnly: Variant = { ...plain, native: CHAT, translated: CHATS }
const azure: Variant = { ...plain, native: OPENAI, keyHeader: ['api-key', ''] }
const gemini: Variant = {
  speaks: 'gemini',
  native: new Set(['generateContent', 'countTokens']),
  translated: [...CHATS, ...EMBEDDINGS],
  keyHeader: ['x-goog-api-key', ''],
  cloud: null,
}
const anthropic: Variant = {
  speaks: 'anthropic',
  native: new Set(['messages', 'messages/count_tokens', 'models', ...FILES, ...MESSAGE_BATCHES]),
  translated: CHATS,
  keyHeader: ['x-api-key', ''],
  cloud: null,
}
const inCloud = { native: NONE, keyHeader: BEARER }

/** All providers with their modes (docs/spec/gateway.md, `provider` and `mode`), the default first; `''` if there are none. */
const PROVIDERS: Readonly<Record<string, Readonly<Record<string, Variant>>>> = {
  openai: { '': plain },
  'azure-openai': { v1: azure, deployments: { ...azure, native: OPENAI.difference(new Set(FILES)) } },
  anthropic: {
    direct: anthropic,
    vertex: { ...anthropic, ...inCloud, speaks: 'anthropic-vertex', cloud: 'gcp' },
    bedrock: { ...anthropic, ...inCloud, speaks: 'anthropic-bedrock', cloud: 'aws' },
  },
  bedrock: {
    converse: { ...inCloud, speaks: 'converse', translated: [...CHATS, ...EMBEDDINGS], cloud: 'aws' },
    openai: { ...chatsOnly, cloud: 'aws' },
  },
  vertex: {
    native: { ...gemini, speaks: 'gemini-vertex', keyHeader: BEARER, cloud: 'gcp' },
    openai: { ...chatsOnly, cloud: 'gcp' },
  },
  gemini: { '': gemini },
  ctxengine: { '': { ...plain, native: new Set(['chat/completions', 'completions', 'models']), translated: CHATS } },
  'oci-genai': { '': { ...chatsOnly, native: new Set(['chat/completions', 'responses']), cloud: 'oci' } },
}

export const PROVIDER_NAMES: readonly string[] = Object.keys(PROVIDERS)

/** Default API versions (docs/spec/gateway.md, `apiVersion`). */
const API_VERSIONS: Readonly<Record<string, string>> = { anthropic: '2023-06-01', 'azure-openai': '2024-10-21' }

/** Provider-specific parts of an endpoint. */
export interface Wire {
  readonly provider: string
  readonly speaks: Speaks
  readonly methods: ReadonlySet<string>
  /** The methods that need no translation. */
  readonly native: ReadonlySet<string>
  readonly keyHeader: readonly [name: string, prefix: string]
  /** Sent with every request; overrides headers of the caller. */
  readonly headers: Readonly<Record<string, string>>
  /** Headers sent unless caller or route set them. */
  readonly defaults: Readonly<Record<string, string>>
  /** Whether the path contains the model. */
  readonly perModel: boolean
  /** Returns path and query below the base URL. */
  pathOf(method: string, model: string | null, stream: boolean): string
}

/** General cloud settings. */
export interface Clouds {
  /** Default region of AWS. */
  readonly awsRegion: string
  /** `cloudCredentials.aws.partitionDNSSuffix`; empty for the default of the region. */
  readonly awsSuffix: string
  /** `ctxengine.upstream` and `ctxengine.apiKeyFile`. */
  readonly engine?: { readonly upstream: string; readonly apiKeyFile: string }
}

/** Adds `ctxengine.upstream` to an endpoint that names none. The key goes to no other address. */
export function withEngine(entry: ModelEndpointEntry, { engine }: Clouds): ModelEndpointEntry {
  if (entry.provider !== 'ctxengine' || entry.upstream !== '') return entry
  if (engine === undefined || engine.upstream === '')
    throw new Error('upstream is required: ctxengine.upstream is not set')
  return { ...entry, upstream: engine.upstream, apiKeyFile: entry.apiKeyFile || engine.apiKeyFile }
}

/** Base URL paths that count as none: the path depends on provider and mode, also after the `/v1` of an Agent's bare host. */
const SILENT_PATHS: ReadonlySet<string> = new Set(['/', '/v1'])
const AZURE_BASES: ReadonlySet<string> = new Set(['/', '/v1', '/openai', '/openai/v1'])

/** Region of an endpoint; for AWS by default from configuration or environment. */
export function regionOf(entry: ModelEndpointEntry, { awsRegion }: Clouds): string {
  return entry.region || (variantOf(entry)?.cloud === 'aws' ? awsRegion : '')
}

/** Base URL without trailing slash. A host is enough if the provider has a default path, and optional in a cloud. */
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

/** Empty if there is no default. */
function usualBase(entry: ModelEndpointEntry, clouds: Clouds): string {
  const { provider = 'openai', mode, project = '' } = entry
  const region = regionOf(entry, clouds)
  switch (variantOf(entry)?.cloud) {
    case 'aws': {
      const host = `https://bedrock-runtime.${region}.${awsDomain(region, clouds.awsSuffix)}`
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

/** Undefined if provider or mode is unknown. */
function variantOf({ provider = 'openai', mode = '' }: ModelEndpointEntry): Variant | undefined {
  const modes = Object.hasOwn(PROVIDERS, provider) ? PROVIDERS[provider] : undefined
  if (modes === undefined) return undefined
  return mode === '' ? Object.values(modes)[0] : Object.hasOwn(modes, mode) ? modes[mode] : undefined
}

/** Throws for invalid entries. */
export function wireOf(entry: ModelEndpointEntry): Wire {
  const { provider = 'openai', mode, apiVersion, auth } = entry
  const variant = variantOf(entry)
  if (variant === undefined) throw new Error(`the provider ${provider} has no mode ${mode}`)
  const { speaks, native, translated, keyHeader } = variant
  const version = apiVersion || API_VERSIONS[provider] || ''
  const isAnthropic = speaks === 'anthropic'
  const ofModel = provider === 'azure-openai' && mode === 'deployments' ? inDeployment(version) : MODEL_PATHS[speaks]
  const chatMethod = isAnthropic ? 'messages' : 'chat/completions'
  return {
    provider,
    speaks,
    methods: new Set([...native, ...translated]),
    native,
    keyHeader: auth?.type === 'bearer' ? BEARER : keyHeader,
    headers: isAnthropic && apiVersion ? { 'anthropic-version': apiVersion } : {},
    defaults: isAnthropic ? { 'anthropic-version': version } : {},
    perModel: ofModel !== undefined,
    pathOf: ofModel ?? ((method) => `/${native.has(method) ? method : (TRANSLATED_TO[method] ?? chatMethod)}`),
  }
}

function inDeployment(version: string): Wire['pathOf'] {
  return (method, model) =>
    method.startsWith('models')
      ? `/openai/${method}?api-version=${version}`
      : `/openai/deployments/${encodeURIComponent(model ?? '')}/${ofOpenAI(method)}?api-version=${version}`
}

/** Endpoints of OpenAI's API to which those of Google's for embeddings are translated; chats are translated to a chat. */
const TRANSLATED_TO: Readonly<Record<string, string>> = { embedContent: 'embeddings', batchEmbedContents: 'embeddings' }

/** Requests of Anthropic's and Google's APIs are translated to OpenAI's. */
function ofOpenAI(method: string): string {
  return method === 'messages' || method === 'generateContent' ? 'chat/completions' : (TRANSLATED_TO[method] ?? method)
}

/** Paths that contain the model, and whether it streams. */
const MODEL_PATHS: Readonly<Partial<Record<Speaks, Wire['pathOf']>>> = {
  converse: (method, model, stream) =>
    `/model/${named(model)}/${EMBEDDINGS.includes(method) ? 'invoke' : stream ? 'converse-stream' : 'converse'}`,
  'anthropic-bedrock': (_, model, stream) =>
    `/model/${named(model)}/${stream ? 'invoke-with-response-stream' : 'invoke'}`,
  gemini: (method, model, stream) =>
    `/models/${named(model)}:${EMBEDDINGS.includes(method) ? 'batchEmbedContents' : ofGoogle(method, stream)}`,
  'gemini-vertex': (method, model, stream) =>
    `/models/${named(model)}:${EMBEDDINGS.includes(method) ? 'predict' : ofGoogle(method, stream)}`,
  'anthropic-vertex': (_, model, stream) => `/models/${named(model)}:${stream ? 'streamRawPredict' : 'rawPredict'}`,
}

function ofGoogle(method: string, stream: boolean): string {
  if (method === 'countTokens') return method
  return stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
}

/** Encodes a caller's model name as one path segment. `@` separates versions at Google. */
function named(model: string | null): string {
  return encodeURIComponent(model ?? '').replace(/%40/g, '@')
}

export const NOT_BUILT = 'not built yet in this version'

/** Problems of an endpoint beyond its schema, by key. */
export function endpointFaults(entry: ModelEndpointEntry): readonly (readonly [key: string, message: string])[] {
  const { provider: name = 'openai', apiVersion = '' } = entry
  if (!Object.hasOwn(PROVIDERS, name)) return [['provider', NOT_BUILT]]
  const variant = variantOf(entry)
  if (variant === undefined) return [['mode', `is not a mode of the provider ${name}`], ...keyFaults(entry)]
  const faults: [string, string][] = []
  // `ctxengine.upstream` is the default of its routes.
  const hasDefault = variant.cloud !== null || name === 'ctxengine' || usualBase(entry, NO_CLOUDS) !== ''
  if (entry.upstream === '' && !hasDefault) faults.push(['upstream', 'is required'])
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

/** Keys for the location in each cloud. */
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

/** Cloud of each type of `auth`. */
const CLOUD_AUTH: Readonly<Record<string, string>> = { 'aws-sigv4': 'aws', gcp: 'gcp', oci: 'oci' }

function authFaults(entry: ModelEndpointEntry, { cloud }: Variant): [string, string][] {
  const { provider: name = 'openai' } = entry
  const type = authTypeOf(entry)
  const isMeant = type === 'azure-entra' ? name === 'azure-openai' : (CLOUD_AUTH[type] ?? cloud) === cloud
  return isMeant ? [] : [['auth.type', `has no meaning for the provider ${name}`]]
}

/** Keys required by a type of `auth`. */
function keyFaults(entry: ModelEndpointEntry): [string, string][] {
  const { apiKeyFile = '', auth = {} } = entry
  const { tokenFile = '', tokenEnv = '', accessKeyIdFile = '', secretAccessKeyFile = '' } = auth
  const type = authTypeOf(entry)
  const faults: [string, string][] = []
  if (type === 'api-key' && apiKeyFile === '') faults.push(['apiKeyFile', 'is required with auth.type api-key'])
  if (type === 'bearer' && tokenFile === '' && tokenEnv === '' && apiKeyFile === '')
    faults.push(['auth.tokenFile', 'this, auth.tokenEnv or apiKeyFile is required with auth.type bearer'])
  if (type === 'none' && apiKeyFile !== '') faults.push(['apiKeyFile', 'is not used with auth.type none'])
  if ((accessKeyIdFile === '') !== (secretAccessKeyFile === ''))
    faults.push(['auth.secretAccessKeyFile', 'and auth.accessKeyIdFile go together'])
  return faults
}
