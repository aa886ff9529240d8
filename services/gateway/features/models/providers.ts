import type { ModelEndpointEntry } from '@plat/resources/rendered'

/** How one provider is spoken to. */
interface Provider {
  /** The variants that are built, the default first; empty: it has none. */
  readonly modes: readonly string[]
  /** Endpoints of OpenAI's or Anthropic's API that it serves. */
  readonly methods: ReadonlySet<string>
  /** The header that carries a key, and what stands before the key. */
  readonly keyHeader: readonly [name: string, prefix: string]
  /** The variant where a route names none, if that is not the first built one. */
  readonly usualMode?: string
}

const BEARER = ['authorization', 'Bearer '] as const
const OPENAI = new Set(['chat/completions', 'completions', 'responses', 'embeddings', 'models'])
const CHAT = new Set(['chat/completions'])
const ANTHROPIC = new Set(['messages', 'messages/count_tokens', 'models'])

/** Every provider that is built (document 3, `provider` and `mode`). */
const PROVIDERS = {
  openai: { modes: [], methods: OPENAI, keyHeader: BEARER },
  anthropic: { modes: ['direct'], methods: ANTHROPIC, keyHeader: ['x-api-key', ''] },
  'azure-openai': { modes: ['v1', 'deployments'], methods: OPENAI, keyHeader: ['api-key', ''] },
  bedrock: { modes: ['openai'], methods: CHAT, keyHeader: BEARER, usualMode: 'converse' },
  vertex: { modes: ['openai'], methods: CHAT, keyHeader: BEARER, usualMode: 'native' },
} as const satisfies Record<string, Provider>

type ProviderName = keyof typeof PROVIDERS

/** Versions of APIs where a route names none (document 3, `apiVersion`). */
const API_VERSIONS: Readonly<Record<string, string>> = { anthropic: '2023-06-01', 'azure-openai': '2024-10-21' }

/** What of an endpoint depends on its provider. */
export interface Wire {
  readonly provider: ProviderName
  readonly methods: ReadonlySet<string>
  readonly keyHeader: readonly [name: string, prefix: string]
  /** Sent with every request, over what the caller sent. */
  readonly headers: Readonly<Record<string, string>>
  /** What a request goes without when neither caller nor route say. */
  readonly defaults: Readonly<Record<string, string>>
  /** The path names the model. */
  readonly perModel: boolean
  /** Path and query below the base URL. */
  pathOf(method: string, model: string | null): string
}

/** Paths of a base URL that say nothing: what follows depends on the mode. */
const AZURE_BASES: ReadonlySet<string> = new Set(['/', '/v1', '/openai', '/openai/v1'])

/** The base URL without a slash at its end. For Azure a host is enough: its modes have paths of their own. Clouds have one in each region. */
export function baseOf({ provider, mode, upstream, region, project }: ModelEndpointEntry, awsRegion: string): string {
  const base = upstream.replace(/\/+$/, '')
  if (base === '' && provider === 'bedrock') return `https://bedrock-runtime.${awsRegion}.amazonaws.com/openai/v1`
  if (base === '') {
    const place = `projects/${project ?? ''}/locations/${region ?? ''}`
    return `https://${region === 'global' ? '' : `${region}-`}aiplatform.googleapis.com/v1/${place}/endpoints/openapi`
  }
  if (provider !== 'azure-openai' || !AZURE_BASES.has(new URL(base).pathname)) return base
  return new URL(base).origin + (mode === 'deployments' ? '' : '/openai/v1')
}

/** Only for an entry without faults: of any other provider it throws. */
export function wireOf({ provider: name = 'openai', mode, apiVersion, auth }: ModelEndpointEntry): Wire {
  if (!isBuilt(name)) throw new Error(`the provider ${name} is not built`)
  const { methods, keyHeader } = PROVIDERS[name]
  const version = apiVersion || API_VERSIONS[name] || ''
  const plain = (method: string) => `/${method}`
  const inDeployment = (method: string, model: string | null) =>
    method.startsWith('models')
      ? `/openai/${method}?api-version=${version}`
      : `/openai/deployments/${encodeURIComponent(model ?? '')}/${method}?api-version=${version}`
  const isAnthropic = name === 'anthropic'
  const perModel = name === 'azure-openai' && mode === 'deployments'
  return {
    provider: name,
    methods,
    keyHeader: auth?.type === 'bearer' ? BEARER : keyHeader,
    headers: isAnthropic && apiVersion ? { 'anthropic-version': apiVersion } : {},
    defaults: isAnthropic ? { 'anthropic-version': version } : {},
    perModel,
    pathOf: perModel ? inDeployment : plain,
  }
}

/** What is wrong with an endpoint beside its schema, by the name of the key. */
export function endpointFaults(entry: ModelEndpointEntry): readonly (readonly [key: string, message: string])[] {
  const { provider: name = 'openai', mode = '', apiVersion = '', auth } = entry
  if (!isBuilt(name)) return [['provider', NOT_BUILT]]
  const { modes, usualMode = '' }: Provider = PROVIDERS[name]
  const faults: [string, string][] = []
  if (entry.upstream === '' && usualMode === '') faults.push(['upstream', 'is required'])
  const meant = mode || usualMode
  if (meant !== '' && !modes.includes(meant))
    faults.push(['mode', BUILT_LATER.has(`${name}/${meant}`) ? NOT_BUILT : `is no variant of the provider ${name}`])
  if (apiVersion !== '' && !(name in API_VERSIONS))
    faults.push(['apiVersion', `has no meaning for the provider ${name}`])
  for (const key of ['region', 'project'] as const) {
    const isMeant = name === 'vertex' || (name === 'bedrock' && key === 'region')
    const isSet = (entry[key] ?? '') !== ''
    if (isSet && !isMeant) faults.push([key, `has no meaning for the provider ${name}`])
    if (!isSet && isMeant && name === 'vertex') faults.push([key, 'is required with provider vertex'])
  }
  return [...faults, ...authFaults(name, auth ?? {}, entry.apiKeyFile ?? '')]
}

export const NOT_BUILT = 'not built yet in this version'
const BUILT_LATER: ReadonlySet<string> = new Set([
  'anthropic/vertex',
  'anthropic/bedrock',
  'bedrock/converse',
  'vertex/native',
])

function authFaults(
  provider: ProviderName,
  auth: NonNullable<ModelEndpointEntry['auth']>,
  apiKeyFile: string,
): [string, string][] {
  const { type = '', tokenFile = '', tokenEnv = '' } = auth
  switch (type) {
    case '':
    case 'api-key':
    case 'bearer':
      if (type === 'api-key' && apiKeyFile === '') return [['apiKeyFile', 'is required with auth.type api-key']]
      if (type === 'bearer' && tokenFile === '' && tokenEnv === '' && apiKeyFile === '')
        return [['auth.tokenFile', 'this, auth.tokenEnv or apiKeyFile is required with auth.type bearer']]
      return []
    case 'none':
      return apiKeyFile === '' ? [] : [['apiKeyFile', 'is presented to nobody with auth.type none']]
    case 'aws-sigv4':
      return provider === 'bedrock' ? [] : [['auth.type', `has no meaning for the provider ${provider}`]]
    case 'gcp':
      return provider === 'vertex' ? [] : [['auth.type', `has no meaning for the provider ${provider}`]]
    default:
      return [['auth.type', NOT_BUILT]]
  }
}

/** How an endpoint knows who asks: a key or token, or a signature of AWS. A source is the path of a file, or `env:` and a variable. */
export interface CredentialSources {
  /** Of the key or token, or of the id of the access key; null: it takes none. */
  readonly key: string | null
  /** Null: no signature. */
  readonly signing: AwsSigning | null
}

/** What a signature needs beside the id of the access key. */
export interface AwsSigning {
  readonly region: string
  readonly service: string
  readonly secret: string
  /** Of temporary credentials; there may be none. */
  readonly session: string
}

const NOBODY: CredentialSources = { key: null, signing: null }

/** What an endpoint is presented: as `auth.type` says, else its key, else what its provider usually takes. */
export function credentialSources(entry: ModelEndpointEntry, region: string): CredentialSources {
  const { provider, apiKeyFile = '', auth = {} } = entry
  const usual =
    apiKeyFile !== '' ? 'api-key' : provider === 'bedrock' ? 'aws-sigv4' : provider === 'vertex' ? 'gcp' : 'none'
  switch (auth.type || usual) {
    case 'none':
      return NOBODY
    case 'bearer':
      return { key: auth.tokenFile || ofVariable(auth.tokenEnv) || apiKeyFile, signing: null }
    case 'gcp':
      return { key: auth.tokenFile || ofVariable(auth.tokenEnv || 'GOOGLE_OAUTH_ACCESS_TOKEN'), signing: null }
    case 'aws-sigv4':
      return {
        key: auth.accessKeyIdFile || ofVariable('AWS_ACCESS_KEY_ID'),
        signing: {
          region,
          service: auth.signingService || 'bedrock',
          secret: auth.secretAccessKeyFile || ofVariable('AWS_SECRET_ACCESS_KEY'),
          // A key from files has no session of the environment.
          session: auth.sessionTokenFile || (auth.accessKeyIdFile ? '' : ofVariable('AWS_SESSION_TOKEN')),
        },
      }
    default:
      return { key: apiKeyFile, signing: null }
  }
}

/** What the source of a credential begins with that is a variable of the environment. */
export const VARIABLE = 'env:'

function ofVariable(name: string | undefined): string {
  return name === undefined || name === '' ? '' : VARIABLE + name
}

function isBuilt(name: string): name is ProviderName {
  return Object.hasOwn(PROVIDERS, name)
}
