import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MalformedResponseError } from '../client/head.ts'
import {
  AbortedError,
  BlockedAddressError,
  dialFault,
  isDialError,
  isUnsent,
  TimeoutError,
  TooManyConnectionsError,
} from './errors.ts'

const coded = (code: string) => Object.assign(new Error('x'), { code })

test('a certificate that Node rejects is a TLS fault, for every reason', () => {
  const codes = ['INVALID_PURPOSE', 'UNABLE_TO_GET_ISSUER_CERT', 'CERT_HAS_EXPIRED', 'ERR_TLS_CERT_ALTNAME_INVALID']
  for (const code of [...codes, 'EPROTO']) assert.equal(dialFault(coded(code)), 'tls', code)
  for (const code of ['ECONNRESET', 'EPIPE']) assert.equal(dialFault(coded(code)), 'lost', code)
})

test('the first of several attempts determines the fault', () => {
  assert.equal(dialFault(new AggregateError([coded('ECONNREFUSED'), coded('ENETUNREACH')])), 'refused')
})

test('a request is unsent if no connection was made, and not if one broke', () => {
  const connecting = (code: string) => Object.assign(coded(code), { syscall: 'connect' })
  const unsent = [
    ...[connecting('ECONNREFUSED'), connecting('EHOSTUNREACH'), coded('ENOTFOUND')],
    new AggregateError([connecting('ECONNREFUSED'), connecting('ENETUNREACH')]),
    new BlockedAddressError('a.example', '10.0.0.1'),
  ]
  for (const error of unsent) assert.equal(isUnsent(error), true, String(error))
  const others = [
    ...['ECONNRESET', 'EPIPE', 'EHOSTUNREACH', 'EPROTO', 'ETIMEDOUT'].map(coded),
    ...[new AggregateError([]), new AggregateError([connecting('ECONNREFUSED'), coded('ECONNRESET')])],
    ...[new TimeoutError('x'), new Error('x'), null],
  ]
  for (const error of others) assert.equal(isUnsent(error), false, String(error))
})

test('errors of connections and of this package are distinct from bugs', () => {
  const errors = [
    ...['ECONNRESET', 'ENOTFOUND', 'ERR_SSL_WRONG_VERSION_NUMBER', 'CRL_HAS_EXPIRED'].map(coded),
    new AggregateError([coded('ECONNREFUSED')]),
    new MalformedResponseError('x'),
    new BlockedAddressError('a.example', '10.0.0.1'),
    new TimeoutError('x'),
    new AbortedError('x'),
    new TooManyConnectionsError(1),
  ]
  for (const error of errors) assert.equal(isDialError(error), true, String(error))
  const argument = Object.assign(new TypeError('x'), { code: 'ERR_INVALID_ARG_TYPE' })
  for (const error of [new Error('x'), new RangeError('x'), argument, new AggregateError([new Error('x')]), 'x', null])
    assert.equal(isDialError(error), false, String(error))
})
