import assert from 'node:assert/strict'
import { isIP } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { createAddressCheck } from './addresses.ts'

const check = createAddressCheck([])

const hex = (high: number, low: number): string => ((high << 8) | low).toString(16)

/** Encodings of an IPv4 address inside IPv6 that some network translates or tunnels back. */
const embeddings: readonly ((a: number, b: number, c: number, d: number) => string)[] = [
  (a, b, c, d) => `::ffff:${a}.${b}.${c}.${d}`,
  (a, b, c, d) => `::ffff:${hex(a, b)}:${hex(c, d)}`,
  (a, b, c, d) => `0:0:0:0:0:FFFF:${hex(a, b)}:${hex(c, d)}`,
  (a, b, c, d) => `::ffff:0:${hex(a, b)}:${hex(c, d)}`,
  (a, b, c, d) => `64:ff9b::${hex(a, b)}:${hex(c, d)}`,
  (a, b, c, d) => `64:ff9b:1::${hex(a, b)}:${hex(c, d)}`,
  (a, b, c, d) => `2002:${hex(a, b)}:${hex(c, d)}::1`,
  (a, b, c, d) => `2001:0:${hex(a, b)}:${hex(c, d)}::1`,
  (a, b, c, d) => `2001:0:808:808:0:0:${hex(a ^ 255, b ^ 255)}:${hex(c ^ 255, d ^ 255)}`,
  (a, b, c, d) => `2a00:1450:4001:81b:0:5efe:${hex(a, b)}:${hex(c, d)}`,
  (a, b, c, d) => `2a00:1450:4001:81b:200:5efe:${hex(a, b)}:${hex(c, d)}`,
]

const byte = fc.integer({ min: 0, max: 255 })

test('a metadata address is refused in every spelling, except for the purpose that reads credentials from it', () => {
  fc.assert(
    fc.property(byte, byte, fc.constantFrom(...embeddings), (c, d, spell) => {
      const text = spell(169, 254, c, d)
      assert.notEqual(isIP(text), 0, text)
      assert.equal(check(text, 'configured'), false, text)
      assert.equal(check(text, 'public'), false, text)
    }),
  )
  for (const text of ['169.254.169.254', 'fe80::1', 'febf::1', 'fd00:ec2::254', 'FD00:0EC2:0:0::254']) {
    assert.equal(check(text, 'configured'), false, text)
    assert.equal(check(text, 'metadata'), true, text)
  }
})

const insides: readonly (readonly [number, number])[] = [
  [0, 0],
  [10, 0],
  [127, 0],
  [172, 16],
  [172, 31],
  [192, 168],
  [100, 64],
  [224, 0],
  [240, 1],
  [198, 18],
]

test('a private address is refused for web purposes in every spelling, and allowed for configured ones', () => {
  fc.assert(
    fc.property(fc.constantFrom(...insides), byte, byte, fc.constantFrom(...embeddings), ([a, b], c, d, spell) => {
      // 0.0.0.0 and 0.0.0.1 in compatible form are :: and ::1, which are refused below.
      assert.equal(check(`${a}.${b}.${c}.${d}`, 'public'), false)
      assert.equal(check(spell(a, b, c, d), 'public'), false, spell(a, b, c, d))
      assert.equal(check(spell(a, b, c, d), 'configured'), true, spell(a, b, c, d))
    }),
  )
})

test('an address that is not a unicast address of the internet is refused for web purposes', () => {
  const refused = [
    '::',
    '::1',
    'fc00::1',
    'fd12::1',
    'fec0::1',
    'ff02::1',
    '2001:db8::1',
    '100::1',
    '5f00::1',
    '4000::1',
    '::7f00:1',
    '168.63.129.16',
    '::ffff:168.63.129.16',
    '255.255.255.255',
    '192.0.0.8',
    '203.0.113.9',
    'localhost',
    '',
    '1.2.3',
    'fe80::1%eth0',
    '::1%127.',
  ]
  for (const text of refused) assert.equal(check(text, 'public'), false, text)
})

test('ordinary internet addresses are allowed', () => {
  for (const text of ['8.8.8.8', '1.1.1.1', '2606:4700::1111', '64:ff9b::808:808', '::ffff:8.8.8.8']) {
    assert.equal(check(text, 'public'), true, text)
    assert.equal(check(text, 'configured'), true, text)
  }
})

test('an allowed range is an exception for all spellings of its addresses, and only for them', () => {
  const some = createAddressCheck(['10.1.0.0/16', 'fd00:1::/32', '169.254.10.0/24'])
  assert.equal(some('10.1.2.3', 'public'), true)
  assert.equal(some('::ffff:10.1.2.3', 'public'), true)
  assert.equal(some('64:ff9b::a01:203', 'public'), true)
  assert.equal(some('fd00:1::5', 'public'), true)
  assert.equal(some('169.254.10.1', 'configured'), true)
  assert.equal(some('10.2.0.1', 'public'), false)
  assert.equal(some('169.254.169.254', 'configured'), false)
  // 6to4 is a separate tunnel: allowing its inner address does not allow the outer one.
  assert.equal(some('2002:a01:203::1', 'public'), false)
})

test('the error names a malformed range', () => {
  assert.throws(() => createAddressCheck(['10.0.0.0/8', '10.0.0.0/33']), /"10\.0\.0\.0\/33" is not an address range/)
  assert.throws(() => createAddressCheck(['example.com']), /"example\.com" is not an address range/)
})

test('a range in an ambiguous spelling, with a scope, or of IPv4 inside IPv6 is not accepted', () => {
  const refused = ['010.0.0.0/8', '10/8', '10.1/16', '0xa.0.0.0/8', '10.0.0.0/08', '10.0.0.0', '10.0.0.0/', '']
  for (const cidr of [...refused, 'fe80::1%eth0/64', '::ffff:10.0.0.0/104', '64:ff9b::a00:0/104', '::a00:0/104']) {
    assert.throws(() => createAddressCheck([cidr]), /is not an address range: write it like/, cidr)
  }
  for (const cidr of ['0.0.0.0/0', '::/0', '::1/128', 'fd00::/8', '10.1.2.3/32']) createAddressCheck([cidr])
})

test('a metadata address behind a local NAT64 is refused, for every prefix length', () => {
  // 169.254.169.254 behind prefixes of 48, 56, 64 and 96 bits.
  const places = ['64:ff9b:1:a9fe:a9:fe00::', '64:ff9b:1:12a9:fe:a9fe::', '64:ff9b:1:1234:a9:fea9:fe00:0']
  for (const text of [...places, '64:ff9b:1:1234:5678:9abc:a9fe:a9fe']) {
    assert.notEqual(isIP(text), 0, text)
    assert.equal(check(text, 'configured'), false, text)
  }
  assert.equal(check('64:ff9b:1:1234:5678:9abc:a01:203', 'configured'), true)
})
