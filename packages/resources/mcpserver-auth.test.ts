import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseResource } from './manifest.ts'

/** An MCPServer whose `auth` says this, in YAML's flow form. */
function parsed(auth: string) {
  const head = 'apiVersion: plat.dev/v1alpha1\nkind: MCPServer\nmetadata: {name: a, namespace: default}\n'
  return parseResource('MCPServer', `${head}spec: {url: "https://x", auth: {${auth}}}\n`)
}

const problems = (auth: string) => parsed(auth).problems.map((line) => line.replace(/^.*?: /, ''))
const takes = (auth: string) => assert.deepEqual(problems(auth), [], auth)
const refuses = (auth: string, problem: RegExp) => assert.match(problems(auth).join('\n'), problem, auth)

const SECRET = 'secretRef: {name: s, key: k}'
const OAUTH = 'tokenURL: "https://t", clientIdRef: {name: s, key: i}, clientSecretRef: {name: s, key: k}'

test('auth defaults to none, and each type accepts its fields', () => {
  // Shows D2.auth.type, D2.auth.type.default.
  assert.equal(parsed('').object?.spec.auth?.type, 'none')
  for (const auth of [
    'type: none',
    `type: bearerSecret, ${SECRET}`,
    `type: headerSecret, headerName: X-Key, ${SECRET}`,
    `type: oauthClientCredentials, oauth: {${OAUTH}}`,
    'type: tokenExchange, tokenExchange: {audience: a}',
    'type: mtls, mtls: {certSecretRef: {name: c}}',
  ]) {
    takes(auth)
  }
  refuses('type: basic', /auth.type: Unsupported value: "basic"/)
})

test('a type without a required field is refused, naming the field', () => {
  // Shows D2.error.validation.serverAuth.
  refuses('type: bearerSecret', /auth.secretRef: Required value: type bearerSecret requires secretRef/)
  refuses('type: headerSecret, headerName: X', /auth.secretRef: Required value/)
  refuses(`type: headerSecret, ${SECRET}`, /auth.headerName: Required value/)
  refuses('type: oauthClientCredentials', /auth.oauth: Required value/)
  refuses('type: tokenExchange', /auth.tokenExchange: Required value/)
  refuses('type: mtls', /auth.mtls: Required value/)
})

test('the parts of auth hold their words, lengths and patterns', () => {
  const long = (length: number) => 'n'.repeat(length)
  takes(`type: bearerSecret, secretRef: {name: ${long(253)}, key: ${long(253)}}`)
  for (const ref of ['name: s', 'key: k', 'name: "", key: k', 'name: s, key: ""', 'name: s, key: "a b"']) {
    refuses(`type: bearerSecret, secretRef: {${ref}}`, /auth.secretRef/)
  }
  refuses(`type: bearerSecret, secretRef: {name: ${long(254)}, key: k}`, /Too long/)
  takes(`type: headerSecret, headerName: ${long(64)}, ${SECRET}`)
  for (const name of [long(65), '"X Key"', '"X:"', '""']) {
    refuses(`type: headerSecret, headerName: ${name}, ${SECRET}`, /auth.headerName/)
  }
  takes(`type: oauthClientCredentials, oauth: {${OAUTH}, audience: a, resource: "https://r", scopes: [a, b]}`)
  refuses(`type: oauthClientCredentials, oauth: {${OAUTH.replace('https://t', 'ftp://t')}}`, /auth.oauth.tokenURL/)
  refuses('type: oauthClientCredentials, oauth: {tokenURL: "https://t"}', /clientIdRef: Required value/)
  refuses('type: tokenExchange, tokenExchange: {audience: ""}', /auth.tokenExchange.audience/)
  refuses('type: mtls, mtls: {certSecretRef: {name: ""}}', /auth.mtls.certSecretRef.name/)
  refuses('type: mtls, mtls: {}', /certSecretRef: Required value/)
})

test('perUser and provider go together, with type none or mtls', () => {
  // Shows D2.auth.perUser.provider, D2.auth.perUser.type, D2.auth.provider.onlyWithPerUser, D2.auth.provider.pattern.
  const mtls = 'mtls: {certSecretRef: {name: c}}'
  takes('type: none, perUser: true, provider: github')
  takes(`type: mtls, ${mtls}, perUser: true, provider: g`)
  refuses('type: none, perUser: true', /auth.provider: Required value: perUser requires provider/)
  refuses(`type: bearerSecret, ${SECRET}, perUser: true, provider: g`, /perUser is only valid with type none or mtls/)
  refuses('type: none, provider: github', /provider is only valid with perUser/)
  refuses('type: none, perUser: false, provider: github', /provider is only valid with perUser/)
  takes(`type: none, perUser: true, provider: ${'g'.repeat(63)}`)
  for (const name of ['G', '-g', 'g-', 'g.h', '""', 'g'.repeat(64)]) {
    refuses(`type: none, perUser: true, provider: ${name}`, /auth.provider/)
  }
})
