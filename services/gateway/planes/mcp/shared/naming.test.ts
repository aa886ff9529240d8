import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MAX_TOOL_NAME, Naming, sharedUri, splitUri } from './naming.ts'

const separator = fc.stringMatching(/^[_.-]{1,4}$/)
const server = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/)
const tool = fc.oneof(fc.string({ minLength: 1, maxLength: 80 }), fc.stringMatching(/^[a-z_]{1,128}$/))

test('a name leads back to the prefix of its server and to the name, whatever a server calls its tools', () => {
  // Shows D3.mcp.mcpSeparator.
  fc.assert(
    fc.property(separator, server, tool, (between, name, own) => {
      const naming = new Naming(between)
      const prefix = naming.prefixOf(name)
      assert.deepEqual(naming.split(naming.join(prefix, own)), { prefix, name: own })
    }),
  )
})

test('a name that models accept is kept; a longer one has 64 characters and the prefix of its server', () => {
  fc.assert(
    fc.property(separator, server, tool, (between, name, own) => {
      const naming = new Naming(between)
      const prefix = naming.prefixOf(name)
      const whole = naming.join(prefix, own)
      const displayed = naming.toolName(prefix, own)
      if (whole.length <= MAX_TOOL_NAME) assert.equal(displayed, whole)
      else {
        assert.ok(naming.isShortened(displayed))
        assert.equal(naming.split(displayed)?.prefix, prefix)
      }
    }),
  )
})

test('long servers and servers with the separator have different prefixes', () => {
  const naming = new Naming('__')
  const names = ['a__b', 'a_b', 'ab', 'a_', 'a', `${'n'.repeat(40)}1`, `${'n'.repeat(40)}2`]
  const prefixes = names.map((name) => naming.prefixOf(name))
  assert.equal(new Set(prefixes).size, names.length)
  assert.deepEqual([prefixes[1], prefixes[2], prefixes[4]], ['a_b', 'ab', 'a'])
})

test('a URI leads back to its server and its own URI', () => {
  for (const uri of ['file:///a/../b?c#d', 'mcp://other/x', 'urn:a:b', 'x', ''])
    assert.deepEqual(splitUri(sharedUri('notes', uri)), { prefix: 'notes', name: uri })
  for (const uri of ['file:///a', 'mcp://', 'mcp:///x', 'mcp://notes']) assert.equal(splitUri(uri), null)
})
