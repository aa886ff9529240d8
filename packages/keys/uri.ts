import { fileURLToPath } from 'node:url'
import { type Pkcs11Uri, readPkcs11Uri } from './pkcs11-uri.ts'

/** A key URI by the place of its key. */
export type KeyUri =
  | { readonly kind: 'file'; readonly path: string }
  /** AWS KMS. `key`: id, ARN or `alias/<name>`. */
  | { readonly kind: 'kms'; readonly region: string; readonly key: string }
  /** Azure Key Vault or Managed HSM, by the host of the vault in the public cloud or elsewhere. `version`: null for the current one. */
  | { readonly kind: 'azurekv'; readonly host: string; readonly key: string; readonly version: string | null }
  | { readonly kind: 'pkcs11'; readonly pkcs11: Pkcs11Uri }

/** Purpose of a key: `sign` by Ed25519, P-256 or RSA, one signature algorithm only, or encryption. */
export type KeyPurpose = 'sign' | 'Ed25519' | 'ML-DSA' | 'encrypt'

const REGION = /^[a-z]{2,4}(?:-[a-z]+)+-\d$/
const KMS_KEY =
  /^(?:(?:mrk-)?[0-9a-f-]{32,36}|alias\/[a-zA-Z0-9/_-]{1,250}|arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:(?:key|alias)\/[a-zA-Z0-9/_-]{1,250})$/
/** Domains of key vaults and of managed HSMs in the clouds of Azure. */
const AZURE_HOST = /^[a-zA-Z0-9-]{3,24}\.(?:vault|managedhsm)\.(?:azure\.net|azure\.cn|usgovcloudapi\.net)$/
const AZURE_VAULT = /^[a-zA-Z0-9-]{3,24}$/
const AZURE_KEY = /^[0-9a-zA-Z-]{1,127}$/
const AZURE_VERSION = /^[0-9a-f]{32}$/

/** Parses a key URI or a path; opens nothing. Throws one line that names the URI and the fix. */
export function readKeyUri(uriOrPath: string): KeyUri {
  if (uriOrPath.startsWith('kms:')) return readKms(uriOrPath)
  if (uriOrPath.startsWith('azurekv:')) return readAzure(uriOrPath)
  if (uriOrPath.startsWith('pkcs11:')) return { kind: 'pkcs11', pkcs11: readPkcs11Uri(uriOrPath) }
  if (uriOrPath.startsWith('file:')) {
    if (!uriOrPath.startsWith('file:///')) throw new Error(`key URI ${uriOrPath}: write file:///absolute/path`)
    return { kind: 'file', path: fileURLToPath(uriOrPath) }
  }
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(uriOrPath)) {
    throw new Error(`key URI ${uriOrPath}: unknown scheme; use a path, file:///, kms://, azurekv:// or pkcs11:`)
  }
  if (uriOrPath === '') throw new Error('key URI is empty; use a path, file:///, kms://, azurekv:// or pkcs11:')
  return { kind: 'file', path: uriOrPath }
}

function readKms(uri: string): KeyUri {
  const [, region = '', key = ''] = /^kms:\/\/aws\/([^/]+)\/(.+)$/.exec(uri) ?? []
  if (!REGION.test(region) || !KMS_KEY.test(key)) {
    throw new Error(`key URI ${uri}: write kms://aws/<region>/<key id, key ARN or alias/name>`)
  }
  return { kind: 'kms', region, key }
}

function readAzure(uri: string): KeyUri {
  const [, vault = '', key = '', version = null] = /^azurekv:\/\/([^/]+)\/([^/]+)(?:\/([^/]+))?$/.exec(uri) ?? []
  const host = AZURE_VAULT.test(vault) ? `${vault}.vault.azure.net` : vault
  if (!AZURE_HOST.test(host) || !AZURE_KEY.test(key) || !(version === null || AZURE_VERSION.test(version))) {
    throw new Error(`key URI ${uri}: write azurekv://<vault>/<key> or azurekv://<vault>/<key>/<version>`)
  }
  return { kind: 'azurekv', host, key, version }
}

/** Returns why a key cannot be used for a purpose, as far as the URI says so, or null. Opens nothing. */
export function keyUriProblem(uriOrPath: string, purpose: KeyPurpose): string | null {
  try {
    const { kind } = readKeyUri(uriOrPath)
    if (kind !== 'azurekv' || purpose === 'sign' || purpose === 'encrypt') return null
    return `key URI ${uriOrPath}: Azure Key Vault has no ${purpose} keys; use a file, kms:// or pkcs11:`
  } catch (error) {
    return error instanceof Error ? error.message : 'is not a key URI'
  }
}
