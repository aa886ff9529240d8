import type { ModelEndpointEntry } from '@plat/resources/rendered'

/** Where the clouds are that lend credentials. */
export type Cloud = 'aws' | 'gcp' | 'azure' | 'oci'

/** What an endpoint is shown, and where it comes from. A `source` is the path of a file, or `env:` and a variable. */
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

/** What a signature of AWS is for. */
export interface AwsSigning {
  readonly region: string
  readonly service: string
}

/** What the source of a credential begins with that is a variable of the environment. */
export const VARIABLE = 'env:'

/** What providers in a cloud usually take, by `<provider>` or `<provider>/<mode>`. */
const USUAL: Readonly<Record<string, string>> = {
  bedrock: 'aws-sigv4',
  vertex: 'gcp',
  'azure-openai': 'azure-entra',
  'oci-genai': 'oci',
  'anthropic/bedrock': 'aws-sigv4',
  'anthropic/vertex': 'gcp',
}

/** The type of `auth` where an entry names none: `api-key` with a key, else as the provider usually wants it. */
export function authTypeOf({ provider = 'openai', mode = '', apiKeyFile = '', auth }: ModelEndpointEntry): string {
  if (auth?.type) return auth.type
  if (apiKeyFile !== '') return 'api-key'
  return USUAL[`${provider}/${mode}`] ?? USUAL[provider] ?? 'none'
}

/** Only for an entry without faults. `region`: where the endpoint is. */
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

/** The files of a credential. */
export function filesOf(source: CredentialSource): readonly string[] {
  const all =
    source.kind === 'key'
      ? [source.source]
      : source.kind === 'aws-keys'
        ? [source.id, source.secret, source.session]
        : []
  return all.filter((one) => one !== '' && !one.startsWith(VARIABLE))
}

/** The cloud that lends a credential; null: it stands in a file, or in a variable. */
export function cloudOf({ kind }: CredentialSource): Cloud | null {
  return kind === 'none' || kind === 'key' || kind === 'aws-keys' ? null : kind
}

function ofVariable(name: string | undefined): string {
  return name === undefined || name === '' ? '' : VARIABLE + name
}
