import { createSecureContext } from 'node:tls'
import type { Credential, UpstreamAuth } from '../../call/index.ts'

/** Client of a token endpoint. */
export interface OAuthClient {
  readonly id: string
  readonly secret: string
}

/** Authentication by files. */
export type FiledAuth = Extract<UpstreamAuth, { credentialKey: string }>

/** Content of the files of one server: a credential for the server, or a client for the token endpoint. */
export type Secret = Credential | OAuthClient

/** Files `<credentialKey><suffix>` of one server. */
export const SUFFIXES: Readonly<Record<FiledAuth['type'], readonly string[]>> = {
  bearerSecret: ['.token'],
  headerSecret: ['.token'],
  oauthClientCredentials: ['.client-id', '.client-secret'],
  mtls: ['.crt', '.key'],
}

/** A bearer token (RFC 6750): visible ASCII without spaces. */
const BEARER = /^[\x21-\x7e]+$/
/** Valid header values. */
const HEADER_VALUE = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/
/** Maximum length of a header value, in characters: most servers accept little more. */
const MAX_VALUE_CHARS = 16 * 1024

/** Returns the secret, or a text with the problem that never quotes the content. */
export function secretOf(auth: FiledAuth, [first = '', second = '']: readonly string[]): Secret | string {
  switch (auth.type) {
    case 'bearerSecret':
      return fits(first, BEARER)
        ? credentialOf({ authorization: `Bearer ${first}` })
        : `${auth.credentialKey}.token holds no bearer token`
    case 'headerSecret':
      return fits(first, HEADER_VALUE)
        ? credentialOf({ [auth.headerName.toLowerCase()]: first })
        : `${auth.credentialKey}.token holds nothing that a header can carry`
    case 'oauthClientCredentials':
      return first !== '' && second !== ''
        ? { id: first, secret: second }
        : `${auth.credentialKey}.client-id or .client-secret is empty`
    case 'mtls':
      return isPair(first, second)
        ? { headers: {}, clientCert: { certPEM: first, keyPEM: second } }
        : `${auth.credentialKey}.crt and .key are not a certificate (PEM) with its private key`
  }
}

function credentialOf(headers: Credential['headers']): Credential {
  return { headers, clientCert: null }
}

/** Returns the credential of a bearer token, or null if the token is not a valid header value. */
export function bearer(token: string): Credential | null {
  return fits(token, BEARER) ? credentialOf({ authorization: `Bearer ${token}` }) : null
}

function fits(text: string, pattern: RegExp): boolean {
  return text.length <= MAX_VALUE_CHARS && pattern.test(text)
}

function isPair(cert: string, key: string): boolean {
  try {
    createSecureContext({ cert, key })
    return cert !== '' && key !== ''
  } catch {
    return false
  }
}
