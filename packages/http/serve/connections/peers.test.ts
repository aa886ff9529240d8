import assert from 'node:assert/strict'
import { test } from 'node:test'
import { peerOf } from './peers.ts'

test('a peer is an IPv4 address, or the /64 network of an IPv6 address', () => {
  assert.equal(peerOf('203.0.113.7'), '203.0.113.7')
  assert.equal(peerOf('::ffff:203.0.113.7'), '203.0.113.7')
  assert.equal(peerOf('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64')
  assert.equal(peerOf('2001:db8:1:2::9'), '2001:db8:1:2::/64')
  assert.equal(peerOf('2001:db8::9'), '2001:db8:0:0::/64')
  assert.equal(peerOf('fe80::1%eth0'), 'fe80:0:0:0::/64')
  assert.equal(peerOf('::1'), '0:0:0:0::/64')
})
