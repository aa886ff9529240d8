import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseLossless } from '@plat/core'
import type { ApiParameter, ApiTool } from '@plat/resources/rendered'
import fc from 'fast-check'
import { requestOf } from './request.ts'

const BASE = 'https://api.example/v1/'

function toolWith(parameters: readonly Partial<ApiParameter>[], more: Partial<ApiTool> = {}): ApiTool {
  const style = (place: ApiParameter['in'] = 'query') => (place === 'query' || place === 'cookie' ? 'form' : 'simple')
  return {
    ...{ name: 'a', title: 'a', description: 'a', method: 'GET', path: '/a', inputSchema: { type: 'object' } },
    parameters: parameters.map((one) => ({
      ...{ argument: 'q', name: 'q', in: 'query' as const, explode: true },
      ...one,
      style: one.style ?? style(one.in),
    })),
    ...more,
  }
}

function urlOf(parameter: Partial<ApiParameter>, q: unknown): string {
  const path = parameter.in === 'path' ? '/a/{q}/b' : '/a'
  const request = requestOf(BASE, toolWith([parameter], { path }), { q })
  return typeof request === 'string' ? request : request.url.href.slice(BASE.length)
}

test('values are written in the style of their parameter', () => {
  assert.equal(urlOf({ in: 'path' }, 'a.b c'), 'a/a.b%20c/b')
  assert.equal(urlOf({ in: 'path', allowSlash: true }, 'a/b c'), 'a/a%2Fb%20c/b')
  assert.equal(urlOf({ in: 'path', explode: false }, ['a', 'b']), 'a/a,b/b')
  assert.equal(urlOf({}, ['a', 'b&c']), 'a?q=a&q=b%26c')
  assert.equal(urlOf({ explode: false }, ['a', 'b']), 'a?q=a,b')
  assert.equal(urlOf({ style: 'pipeDelimited', explode: false }, ['a', 'b']), 'a?q=a%7Cb')
  assert.equal(urlOf({ style: 'deepObject' }, { x: 1, y: true }), 'a?q%5Bx%5D=1&q%5By%5D=true')
  assert.equal(urlOf({}, { x: 1 }), 'a?x=1')
  assert.equal(urlOf({ style: 'json' }, { x: [1] }), 'a?q=%7B%22x%22%3A%5B1%5D%7D')
  assert.equal(urlOf({}, parseLossless('12345678901234567890')), 'a?q=12345678901234567890')
  assert.equal(urlOf({}, [['a']]), 'arguments/q: must not have lists or objects within it')
})

test('a member of an object is never written as another parameter, however a server compares names', () => {
  const account = { argument: 'account', name: 'account' }
  const objects = ['filter', 'more'].map((argument) => ({ argument, name: argument, style: 'form' as const }))
  for (const place of ['query', 'cookie'] as const) {
    const tool = toolWith([account, ...objects].map((one) => ({ ...one, in: place })))
    const sent = (values: object) => {
      const request = requestOf(BASE, tool, { ...values })
      return typeof request === 'string' ? request : (request.headers.cookie ?? request.url.search)
    }
    const refusal = 'arguments/filter: must not have a member with the name of another parameter'
    for (const name of ['account', 'Account', ' account', 'account[]', 'more'])
      assert.equal(sent({ filter: { [name]: 'x' } }), refusal, name)
    assert.equal(sent({ account: 'mine', filter: { x: 1, account: 'x' } }), refusal)
    assert.equal(sent({ filter: { x: 1, X: 2 } }), refusal)
    assert.match(sent({ filter: { x: 1 }, more: { x: 2 } }), /^arguments\/more: must not/)
    assert.match(sent({ account: 'mine', filter: { x: 1, filter: 2 } }), /account=mine.*x=1.*filter=2$/)
  }
})

test('a value of the path never leads to another path, however often it is decoded', () => {
  const refused = [
    ...['..', '.', '../x', 'a/../b', '%2e%2e', '%252e%252e/x', '..%2fx', '..;', '..;/x', ''],
    ...['a\\b', 'a%5cb', 'a%255Cb', '\\', 'a\0b', 'a%00b', 'a\nb', 'a\x7fb', 'a%7Fb', 'a\x85b'],
    ...['/', '/a', 'a/', 'a//b', 'a%2F%2fb', 'a%2F/b'],
  ]
  for (const value of refused)
    for (const parameter of [{ in: 'path' }, { in: 'path', allowSlash: true }] as const)
      assert.match(urlOf(parameter, value), /^arguments\/q: must not/, JSON.stringify(value))
  for (const value of [['a', 'b/../c'], ['a', 'b\\c'], { a: 'b\nc' }, { 'a\\': 'b' }])
    assert.match(urlOf({ in: 'path', allowSlash: true }, value), /^arguments\/q: must not/, JSON.stringify(value))
  assert.equal(urlOf({ in: 'path' }, ''), 'arguments/q: must not be empty')
})

test('a slash in a path is refused unless its parameter allows it, however often it is encoded', () => {
  for (const value of ['a/b', 'a%2Fb', 'a%2fb', 'a%252Fb', ['a', 'b/c'], { 'a/b': 'c' }]) {
    assert.equal(urlOf({ in: 'path' }, value), 'arguments/q: must not have a slash', JSON.stringify(value))
    assert.match(urlOf({ in: 'path', allowSlash: true }, value), /^a\/[^/]+\/b$/, JSON.stringify(value))
  }
  assert.equal(urlOf({ in: 'query' }, 'a/b'), 'a?q=a%2Fb')
})

test('for any values, the URL stays below the base and no header has a line break', () => {
  const text = fc.string({ unit: 'binary', maxLength: 20 })
  const value = fc.oneof(text, fc.array(text), fc.dictionary(text, text))
  const places = ['path', 'query', 'header', 'cookie'] as const
  const property = fc.property(value, fc.constantFrom(...places), fc.boolean(), (q, place, explode) => {
    const tool = toolWith([{ in: place, explode }], { path: place === 'path' ? '/a/{q}/b' : '/a' })
    const request = requestOf(BASE, tool, { q })
    if (typeof request === 'string') return
    assert.equal(request.url.origin, 'https://api.example')
    assert.match(request.url.pathname, place === 'path' ? /^\/v1\/a\/[^/]+\/b$/ : /^\/v1\/a$/)
    for (const header of Object.values(request.headers)) assert.match(header, /^[\x20-\x7e]*$/)
    if (place === 'cookie' && typeof q === 'string') assert.match(request.headers.cookie ?? '', /^q=[^;,\s]*$/)
  })
  fc.assert(property, { numRuns: 100 })
})

test('bodies are JSON, forms or text, and numbers keep their digits', () => {
  const sent = (form: 'json' | 'form' | 'text', mediaType: string, body: unknown) => {
    const request = requestOf(BASE, toolWith([], { body: { form, mediaType } }), { body })
    return typeof request === 'string' ? request : [request.headers['content-type'], request.body]
  }
  const exact = parseLossless('{"id":12345678901234567890}')
  assert.deepEqual(sent('json', 'application/json', exact), ['application/json', '{"id":12345678901234567890}'])
  const form = 'application/x-www-form-urlencoded'
  assert.deepEqual(sent('form', form, { a: 'x y', b: [1, 2] }), [form, 'a=x+y&b=1&b=2'])
  assert.equal(sent('form', form, 'x'), 'arguments/body: must be an object')
  assert.deepEqual(sent('text', 'text/plain', 'é'), ['text/plain;charset=utf-8', 'é'])
})

test('values that are too long to be encoded are refused, with and without lists', () => {
  const long = 'x'.repeat(10_000)
  const many = Array.from({ length: 2000 }, () => 'x')
  for (const q of [long, many, { a: long }, { a: many }, { [long]: 1 }])
    for (const place of ['path', 'query', 'header', 'cookie'] as const)
      assert.equal(urlOf({ in: place }, q), 'arguments/q: too long')
  const form = toolWith([], { body: { form: 'form', mediaType: 'application/x-www-form-urlencoded' } })
  assert.equal(requestOf(BASE, form, { body: { a: many } }), 'arguments/body: too long')
  assert.equal(requestOf(BASE, form, { body: { a: 'x'.repeat(300_000) } }), 'arguments/body: too long')
})

test('a header with a line break or other characters is refused', () => {
  for (const q of ['a\r\nx: y', 'a\nb', 'é', '\0', 'x'.repeat(5000)]) {
    const request = requestOf(BASE, toolWith([{ in: 'header' }]), { q })
    assert.equal(request, 'arguments/q: must be printable ASCII of at most 4096 characters')
  }
})
