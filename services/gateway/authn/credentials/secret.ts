import { createSecureContext } from 'node:tls'
import type { Credential, UpstreamAuth } from '../../call/index.ts'

/** The client that asks a token endpoint. */
export interface OAuthClient {
  readonly id: string
  readonly secret: string
}

/** How a server is told who the gateway is, where that stands in files. */
export type FiledAuth = Extract<UpstreamAuth, { credentialKey: string }>

/** What the files of one server say: what is shown to it, or to the token endpoint before it. */
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
/** What a header can carry. */
const HEADER_VALUE = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/
/** Longest value of a header, in characters: servers take few more, and nothing else in a head is as long. */
const MAX_VALUE_CHARS = 16 * 1024

/** A string says what is wrong with the content; it never quotes it. */
export function secretOf(auth: FiledAuth, [first = '', second = '']: readonly string[]): Secret | string {
  switch (auth.type) {
    case 'bearerSecret':
      return fits(first, BEARER)
        ? shown({ authorization: `Bearer ${first}` })
        : `${auth.credentialKey}.token holds no bearer token`
    case 'headerSecret':
      return fits(first, HEADER_VALUE)
        ? shown({ [auth.headerName.toLowerCase()]: first })
        : `${auth.credentialKey}.token holds nothing that a header can carry`
    case 'oauthClientCredentials':
      return first !== '' && second !== ''
        ? { id: first, secret: second }
        : `${auth.credentialKey}.client-id or .client-secret is empty`
    case 'mtls':
      return isPair(first, second)
        ? { headers: {}, clientCert: { certPEM: first, keyPEM: second } }
        : `${auth.credentialKey}.crt and .key are no certificate (PEM) with its private key`
  }
}

function shown(headers: Credential['headers']): Credential {
  return { headers, clientCert: null }
}

/** What is shown to a server that takes a bearer token; null: the text can stand in no header. */
export function bearer(token: string): Credential | null {
  return fits(token, BEARER) ? shown({ authorization: `Bearer ${token}` }) : null
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
