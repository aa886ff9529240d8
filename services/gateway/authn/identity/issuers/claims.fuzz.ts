import assert from 'node:assert/strict'
import { isFault } from '@plat/tokens'
import fc from 'fast-check'
import { fuzzTarget } from '../../../../../test/fuzz/target.ts'
import { decodeExternal } from './claims.ts'

const names = [
  'iss',
  'sub',
  'aud',
  'iat',
  'nbf',
  'exp',
  'jti',
  'sid',
  'scope',
  'scp',
  'cnf',
  'groups',
  'email',
  'realm',
]
const payload = fc.dictionary(fc.constantFrom(...names), fc.jsonValue(), { maxKeys: names.length })
/** Required claims of every token, so that some are accepted. */
const usual = { iss: 'https://login.example', sub: 'u', aud: 'a', exp: 1 }
const token = fc.tuple(payload, fc.boolean()).map(([members, whole]) => (whole ? { ...members, ...usual } : members))
const claim = fc.constantFrom('', 'sub', 'realm.agent', 'email', '__proto__')

const property = fc.property(token, claim, fc.constantFrom('', 'p/'), (members, path, scopePrefix) => {
  const claims = decodeExternal(
    {
      header: { alg: 'ES256', kid: null, typ: null, members: {} },
      payload: members,
      input: Buffer.from('x'),
      signature: Buffer.from('x'),
    },
    {
      issuer: usual.iss,
      namespace: 'default',
      jwksURL: '',
      caFile: '',
      algorithms: ['ES256'],
      jwksRefreshSeconds: 300,
      authorizationServer: '',
      agent: 'external',
      agentClaim: path,
      usernameClaim: path,
      groupsClaim: path || 'groups',
      scopePrefix,
      servers: [],
      stepUpScopes: {},
    },
  )
  if (isFault(claims)) return
  assert.match(claims.agent, /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/)
  assert.match(claims.session, /^ext-[a-z2-7]{26}$/)
  assert.ok(claims.user !== '')
  assert.ok(Number.isSafeInteger(claims.expiresAt) && claims.scopes.every((scope) => scope !== ''))
})

/** Any signed claims become a well-formed identity or a fault, never an exception. */
export const target = fuzzTarget('gateway: claims of trusted issuers', { 'external claims': property })
