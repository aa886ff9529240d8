import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dialFault } from './errors.ts'

const coded = (code: string) => Object.assign(new Error('x'), { code })

test('a certificate that Node does not accept is a fault of TLS, whatever is wrong with it', () => {
  const codes = ['INVALID_PURPOSE', 'UNABLE_TO_GET_ISSUER_CERT', 'CERT_HAS_EXPIRED', 'ERR_TLS_CERT_ALTNAME_INVALID']
  for (const code of [...codes, 'EPROTO']) assert.equal(dialFault(coded(code)), 'tls', code)
  for (const code of ['ECONNRESET', 'EPIPE']) assert.equal(dialFault(coded(code)), 'lost', code)
})

test('of several attempts the first one tells', () => {
  assert.equal(dialFault(new AggregateError([coded('ECONNREFUSED'), coded('ENETUNREACH')])), 'refused')
})
