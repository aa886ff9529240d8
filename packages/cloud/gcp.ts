import { createPrivateKey, sign } from 'node:crypto'
import { readText } from '@plat/config'
import { encodeBase64url, type JsonObject } from '@plat/core'
import {
  answerOf,
  CloudCredentialError,
  type CloudParts,
  type Expiring,
  form,
  MAX_FILE_BYTES,
  membersOf,
  textIn,
  tokenOf,
} from './cloud.ts'

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
const TOKEN_URL = 'https://oauth2.googleapis.com/token'
const SERVICE = "Google's token endpoint"
const FILE = 'the file of GOOGLE_APPLICATION_CREDENTIALS'
/** Lifetime of a service account's assertion, in seconds. */
const ASSERTION_SECONDS = 3600

/**
 * Fetches an access token of Google Cloud from the first source in the environment: `GOOGLE_OAUTH_ACCESS_TOKEN`, the file of
 * `GOOGLE_APPLICATION_CREDENTIALS` (a service account, a workload identity federation or a user), else the metadata server of the
 * machine. Throws `CloudCredentialError`.
 */
export async function gcpToken(parts: CloudParts): Promise<Expiring<string>> {
  const { GOOGLE_OAUTH_ACCESS_TOKEN: ready, GOOGLE_APPLICATION_CREDENTIALS: path } = parts.env
  if (ready && /^[\x21-\x7e]+$/.test(ready)) return { value: ready, expiresAt: null }
  if (!path) return await machineToken(parts)
  const text = await readText(path, MAX_FILE_BYTES)
  if (text === null) throw new CloudCredentialError(`${FILE} cannot be read`)
  const file = membersOf(text, FILE)
  switch (file.type) {
    case 'service_account':
      return await accountToken(parts, file)
    case 'external_account':
      return await federatedToken(parts, file)
    case 'authorized_user':
      return await userToken(parts, file)
    default:
      throw new CloudCredentialError(`${FILE} must be of type service_account, external_account or authorized_user`)
  }
}

async function requestToken(
  parts: CloudParts,
  url: string,
  fields: Readonly<Record<string, string>>,
): Promise<Expiring<string>> {
  return tokenOf(await answerOf(parts, { service: SERVICE, url, ...form(fields) }), SERVICE, parts.clock)
}

/** RFC 7523: the service account signs its assertion. */
async function accountToken(parts: CloudParts, file: JsonObject): Promise<Expiring<string>> {
  const url = typeof file.token_uri === 'string' ? file.token_uri : TOKEN_URL
  const issuedAt = Math.floor(parts.clock.now() / 1000)
  const claims = {
    iss: textIn(file, 'client_email', FILE),
    scope: SCOPE,
    aud: url,
    iat: issuedAt,
    exp: issuedAt + ASSERTION_SECONDS,
  }
  const header = {
    alg: 'RS256',
    typ: 'JWT',
    ...(typeof file.private_key_id === 'string' && { kid: file.private_key_id }),
  }
  const signed = [header, claims].map((part) => encodeBase64url(Buffer.from(JSON.stringify(part)))).join('.')
  const assertion = `${signed}.${encodeBase64url(signature(signed, textIn(file, 'private_key', FILE)))}`
  return await requestToken(parts, url, { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion })
}

function signature(text: string, pem: string): Uint8Array {
  try {
    return sign('sha256', Buffer.from(text), createPrivateKey(pem))
  } catch {
    // The error could contain parts of the key.
    throw new CloudCredentialError(`the private_key of ${FILE} is not a usable signing key`)
  }
}

async function userToken(parts: CloudParts, file: JsonObject): Promise<Expiring<string>> {
  return await requestToken(parts, TOKEN_URL, {
    grant_type: 'refresh_token',
    client_id: textIn(file, 'client_id', FILE),
    client_secret: textIn(file, 'client_secret', FILE),
    refresh_token: textIn(file, 'refresh_token', FILE),
  })
}

/** RFC 8693: exchanges a token of another issuer, from a file, for one of Google; optionally impersonates an account. */
async function federatedToken(parts: CloudParts, file: JsonObject): Promise<Expiring<string>> {
  const token = await requestToken(parts, textIn(file, 'token_url', FILE), {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    audience: textIn(file, 'audience', FILE),
    scope: SCOPE,
    subject_token_type: textIn(file, 'subject_token_type', FILE),
    subject_token: await subjectToken(file),
  })
  const { service_account_impersonation_url: account } = file
  return typeof account === 'string' && account !== '' ? await impersonated(parts, account, token.value) : token
}

async function subjectToken({ credential_source: source }: JsonObject): Promise<string> {
  const { file: path, format }: JsonObject = typeof source === 'object' && source !== null ? { ...source } : {}
  if (typeof path !== 'string') throw new CloudCredentialError(`credential_source of ${FILE} must name a file`)
  const text = (await readText(path, MAX_FILE_BYTES))?.trim()
  if (!text) throw new CloudCredentialError(`the file that credential_source of ${FILE} names cannot be read`)
  const { type, subject_token_field_name: field }: JsonObject =
    typeof format === 'object' && format !== null ? { ...format } : {}
  return type === 'json' ? textIn(membersOf(text, 'the subject token'), String(field), 'the subject token') : text
}

async function impersonated(parts: CloudParts, url: string, token: string): Promise<Expiring<string>> {
  const service = 'generateAccessToken of Google'
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
  const body = JSON.stringify({ scope: [SCOPE] })
  const members = membersOf(await answerOf(parts, { service, url, method: 'POST', headers, body }), service)
  const expiresAt = Date.parse(textIn(members, 'expireTime', service))
  if (!Number.isFinite(expiresAt)) throw new CloudCredentialError(`${service} returned no lifetime of its token`)
  return { value: textIn(members, 'accessToken', service), expiresAt }
}

async function machineToken(parts: CloudParts): Promise<Expiring<string>> {
  const host = parts.config.gcp.metadataHost || parts.env.GCE_METADATA_HOST || '169.254.169.254'
  const service = 'the metadata server of Google Cloud'
  const url = `http://${host}/computeMetadata/v1/instance/service-accounts/default/token`
  const text = await answerOf(parts, { service, url, purpose: 'metadata', headers: { 'metadata-flavor': 'Google' } })
  return tokenOf(text, service, parts.clock)
}
