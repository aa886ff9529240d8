import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { domainSet, isDomain } from './domains.ts'

test('a domain covers the host and everything below it, a star only what is below', () => {
  const set = domainSet(['example.com', '*.wiki.example', 'Bücher.example', '192.0.2.7', '2001:DB8::1', 'one.'])
  const named = ['example.com', 'example.com.', 'a.b.example.com', 'en.wiki.example', 'xn--bcher-kva.example']
  for (const host of [...named, '192.0.2.7', '[2001:db8::1]', 'one', 'x.one']) assert.ok(set.has(host), host)
  const others = [
    'badexample.com',
    'com',
    'example.com.evil.net',
    'wiki.example',
    'x.192.0.2.7',
    '1.192.0.2.7',
    '',
    '.',
  ]
  for (const host of others) assert.ok(!set.has(host), host)
  assert.ok(domainSet(['*']).has('anything.at.all'))
  assert.ok(!domainSet([]).has('anything') && domainSet([]).isEmpty && !set.isEmpty)
})

test('other text is not a domain', () => {
  const none = [
    '',
    '*.',
    '**',
    'a.*.b',
    '*a.com',
    'http://a.com',
    'a.com:80',
    'a.com/x',
    'u@a.com',
    'a b',
    '*.*',
    '[::1',
    '%61.com',
  ]
  for (const text of [...none, 'a\\b', `${'a'.repeat(254)}`, '[::g]', '?']) assert.ok(!isDomain(text), text)
  for (const text of ['localhost', '*', '*.com', '::1', '[::1]', '10.0.0.1', 'EXAMPLE.com', 'xn--bcher-kva.de']) {
    assert.ok(isDomain(text), text)
  }
})

test('no text is both refused and matched, and no host outside a domain is in its set', () => {
  const label = fc.stringMatching(/^[a-z][a-z0-9]{0,5}$/)
  const host = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join('.'))
  fc.assert(
    fc.property(host, host, (domain, other) => {
      const expected = other === domain || other.endsWith(`.${domain}`)
      assert.equal(domainSet([domain]).has(other), expected)
      assert.equal(domainSet([`*.${domain}`]).has(other), expected && other !== domain)
    }),
  )
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => isDomain(text) || domainSet([text]).has(text) === false),
  )
})
