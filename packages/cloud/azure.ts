import { readText } from '@plat/config'
import { withoutTrailing } from '@plat/core'
import {
  answerOf,
  CloudCredentialError,
  type CloudParts,
  type Expiring,
  form,
  MAX_FILE_BYTES,
  tokenOf,
} from './cloud.ts'

/** Domains of an Azure cloud: of its services, and of its keys. */
interface Domains {
  readonly services: string
  readonly keys: string
}

/** The domains by the host of the authority. */
const DOMAINS: Readonly<Record<string, Domains>> = {
  'login.microsoftonline.us': { services: 'azure.us', keys: 'usgovcloudapi.net' },
  'login.chinacloudapi.cn': { services: 'azure.cn', keys: 'azure.cn' },
}
const AUTHORITY = 'https://login.microsoftonline.com'
const PUBLIC: Domains = { services: 'azure.com', keys: 'azure.net' }

/** Resource of a token: models, the ingestion of logs, or keys in vaults and in hardware. */
export type AzureService = 'cognitiveservices' | 'monitor' | 'vault' | 'managedhsm'
const SERVICE = 'Microsoft Entra'

/**
 * Fetches an access token of Microsoft Entra from the first source in the environment: the secret of an application, the federated
 * token of a service account (through the cluster's endpoint with `cloudCredentials.azure.identityBinding`), or, with
 * `managedIdentity`, the identity of the machine. Throws `CloudCredentialError`.
 */
export async function azureToken(parts: CloudParts, service: AzureService): Promise<Expiring<string>> {
  const { env, config } = parts
  const asking = { ...parts, service }
  const isNamed = Boolean(env.AZURE_TENANT_ID && env.AZURE_CLIENT_ID)
  if (isNamed && env.AZURE_CLIENT_SECRET) return await entra(asking, { client_secret: env.AZURE_CLIENT_SECRET })
  if (isNamed && env.AZURE_FEDERATED_TOKEN_FILE) return await federated(asking, env.AZURE_FEDERATED_TOKEN_FILE)
  if (config.azure.managedIdentity) return await machineToken(asking)
  throw new CloudCredentialError(
    'Azure: set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET or AZURE_FEDERATED_TOKEN_FILE, or cloudCredentials.azure.managedIdentity',
  )
}

type AzureRequest = CloudParts & { readonly service: AzureService }

async function federated(parts: AzureRequest, path: string): Promise<Expiring<string>> {
  const token = (await readText(path, MAX_FILE_BYTES))?.trim()
  if (!token) throw new CloudCredentialError('Azure: the file of AZURE_FEDERATED_TOKEN_FILE cannot be read')
  return await entra(parts, {
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: token,
  })
}

async function entra(parts: AzureRequest, proof: Readonly<Record<string, string>>): Promise<Expiring<string>> {
  const { env, config } = parts
  const fields = {
    grant_type: 'client_credentials',
    client_id: env.AZURE_CLIENT_ID ?? '',
    scope: `${resourceOf(parts)}/.default`,
    ...proof,
  }
  const path = `/${env.AZURE_TENANT_ID}/oauth2/v2.0/token`
  const isBound = config.azure.identityBinding && proof.client_assertion !== undefined
  const place = isBound ? await binding(parts) : { base: env.AZURE_AUTHORITY_HOST || AUTHORITY }
  const { base, ...trust } = place
  const url = withoutTrailing(base, '/') + path
  return tokenOf(await answerOf(parts, { service: SERVICE, url, ...form(fields), ...trust }), SERVICE, parts.clock)
}

function resourceOf({ env, service }: AzureRequest): string {
  const authority = URL.parse(env.AZURE_AUTHORITY_HOST || AUTHORITY)?.hostname ?? ''
  const { services, keys } = DOMAINS[authority] ?? PUBLIC
  return `https://${service}.${service === 'vault' || service === 'managedhsm' ? keys : services}`
}

/** Identity bindings of AKS: the cluster has an endpoint that replaces Entra, with a name and CA from the pod's environment. */
async function binding({ env }: CloudParts): Promise<{ base: string; caPEM?: string; serverName?: string }> {
  const { AZURE_KUBERNETES_TOKEN_PROXY: base, AZURE_KUBERNETES_SNI_NAME: serverName } = env
  if (!base)
    throw new CloudCredentialError('Azure: cloudCredentials.azure.identityBinding needs AZURE_KUBERNETES_TOKEN_PROXY')
  const path = env.AZURE_KUBERNETES_CA_FILE
  const caPEM = path ? await readText(path, MAX_FILE_BYTES) : env.AZURE_KUBERNETES_CA_DATA
  if (caPEM === null) throw new CloudCredentialError('Azure: the file of AZURE_KUBERNETES_CA_FILE cannot be read')
  return { base, ...(caPEM && { caPEM }), ...(serverName && { serverName }) }
}

/** Fetches the identity of the machine, or of the app if the platform has an endpoint for it. */
async function machineToken(parts: AzureRequest): Promise<Expiring<string>> {
  const { env } = parts
  const { IDENTITY_ENDPOINT: ofApp, IDENTITY_HEADER: proof } = env
  const service = 'the identity endpoint of Azure'
  const isApp = Boolean(ofApp && proof)
  const base = isApp
    ? (ofApp ?? '')
    : `${withoutTrailing(env.AZURE_POD_IDENTITY_AUTHORITY_HOST || 'http://169.254.169.254', '/')}/metadata/identity/oauth2/token`
  const url = new URL(base)
  url.searchParams.set('api-version', isApp ? '2019-08-01' : '2018-02-01')
  url.searchParams.set('resource', resourceOf(parts))
  if (env.AZURE_CLIENT_ID) url.searchParams.set('client_id', env.AZURE_CLIENT_ID)
  const headers = isApp ? { 'x-identity-header': proof ?? '' } : { metadata: 'true' }
  return tokenOf(await answerOf(parts, { service, url: url.href, purpose: 'metadata', headers }), service, parts.clock)
}
