import type { ModelEndpointEntry } from '@plat/resources/rendered'

/** Clouds that lend credentials. */
export type Cloud = 'aws' | 'gcp' | 'azure' | 'oci'

/** Source of an endpoint's credential. A `source` is a file path, or `env:` and a variable. */
export type CredentialSource =
  | { readonly kind: 'none' }
  | { readonly kind: 'key'; readonly source: string }
  | {
      readonly kind: 'aws-keys'
      readonly id: string
      readonly secret: string
      readonly session: string
      readonly signing: AwsSigning
    }
  | { readonly kind: 'aws'; readonly signing: AwsSigning }
  | { readonly kind: 'gcp' | 'azure' }
  | { readonly kind: 'oci'; readonly project: string }

/** Scope of an AWS signature. */
export interface AwsSigning {
  readonly region: string
  readonly service: string
}

/** Prefix of sources that are environment variables. */
export const VARIABLE = 'env:'

/** Default types of providers in a cloud, by `<provider>` or `<provider>/<mode>`. */
const USUAL: Readonly<Record<string, string>> = {
  bedrock: 'aws-sigv4',
  vertex: 'gcp',
  'azure-openai': 'azure-entra',
  'oci-genai': 'oci',
  'anthropic/bedrock': 'aws-sigv4',
  'anthropic/vertex': 'gcp',
}

/** Type of `auth`; the default is `api-key` with a key, else the provider's. */
export function authTypeOf({ provider = 'openai', mode = '', apiKeyFile = '', auth }: ModelEndpointEntry): string {
  if (auth?.type) return auth.type
  if (apiKeyFile !== '') return 'api-key'
  return USUAL[`${provider}/${mode}`] ?? USUAL[provider] ?? 'none'
}

/** Valid entries only. `region`: that of the endpoint. */
export function credentialSource(entry: ModelEndpointEntry, region: string): CredentialSource {
  const { apiKeyFile = '', auth = {}, project = '' } = entry
  switch (authTypeOf(entry)) {
    case 'none':
      return { kind: 'none' }
    case 'bearer':
      return { kind: 'key', source: auth.tokenFile || ofVariable(auth.tokenEnv) || apiKeyFile }
    case 'gcp': {
      const source = auth.tokenFile || ofVariable(auth.tokenEnv)
      return source === '' ? { kind: 'gcp' } : { kind: 'key', source }
    }
    case 'aws-sigv4': {
      const signing = { region, service: auth.signingService || 'bedrock' }
      const { accessKeyIdFile: id = '', secretAccessKeyFile: secret = '', sessionTokenFile: session = '' } = auth
      return id === '' ? { kind: 'aws', signing } : { kind: 'aws-keys', id, secret, session, signing }
    }
    case 'azure-entra':
      return { kind: 'azure' }
    case 'oci':
      return { kind: 'oci', project }
    default:
      return { kind: 'key', source: apiKeyFile }
  }
}

export function filesOf(source: CredentialSource): readonly string[] {
  const all =
    source.kind === 'key'
      ? [source.source]
      : source.kind === 'aws-keys'
        ? [source.id, source.secret, source.session]
        : []
  return all.filter((one) => one !== '' && !one.startsWith(VARIABLE))
}

/** Returns the cloud that lends a credential, or null for files and variables. */
export function cloudOf({ kind }: CredentialSource): Cloud | null {
  return kind === 'none' || kind === 'key' || kind === 'aws-keys' ? null : kind
}

function ofVariable(name: string | undefined): string {
  return name === undefined || name === '' ? '' : VARIABLE + name
}
