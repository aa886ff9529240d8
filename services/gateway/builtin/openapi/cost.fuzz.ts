import { parseLossless, parseStrict } from '@plat/core'
import type { ApiTool } from '@plat/resources/rendered'
import { costTarget, type Families, type Row } from '../../../../test/fuzz/cost.ts'
import { json, text } from '../../../../test/fuzz/families.ts'
import { resultOf } from './answer.ts'
import { schemaProblem } from './check.ts'
import { requestOf } from './request.ts'

const MIB = 1024 * 1024
const BODY = 4 * MIB

const any = { $ref: '#/$defs/Any' }
const schema = {
  type: 'object' as const,
  properties: { result: any },
  additionalProperties: any,
  $defs: {
    Any: {
      anyOf: [
        { type: 'object', additionalProperties: any },
        { type: 'array', items: any, uniqueItems: true },
        { enum: ['a', 1, { b: 2 }] },
        { type: ['string', 'number', 'boolean', 'null'], minLength: 0, multipleOf: 0.5 },
      ],
    },
  },
}

const tool: ApiTool = {
  ...{ name: 'a', title: 'a', description: 'a', method: 'POST', path: '/a/{p}', inputSchema: schema },
  parameters: (['path', 'query', 'header', 'cookie'] as const).map((place) => ({
    argument: place,
    name: place.slice(0, 1),
    in: place,
    style: place === 'query' || place === 'cookie' ? ('form' as const) : ('simple' as const),
    explode: true,
  })),
  body: { form: 'form', mediaType: 'application/x-www-form-urlencoded' },
  outputSchema: schema,
  wrapped: true,
}

const parsed = (input: string) => {
  parseStrict(input)
  return parseLossless(input)
}

const values: Families = {
  ...text,
  percent: (n) => '%25'.repeat(n / 3),
  dots: (n) => '../'.repeat(n / 3),
  'dots that are encoded': (n) => '%2e%2e%2f'.repeat(n / 9),
}

const rows: readonly Row[] = [
  {
    parser: 'arguments of APIs',
    limit: BODY,
    families: json,
    prepare: (input) => {
      const value = parsed(`{"result":${input}}`)
      return () => schemaProblem(schema, value)
    },
  },
  {
    parser: 'requests to APIs',
    limit: BODY,
    families: values,
    run: (input) => {
      for (const place of ['path', 'query', 'header', 'cookie', 'body'])
        requestOf('https://a.example/b', tool, { path: 'x', [place]: place === 'body' ? { a: [input] } : input })
    },
  },
  {
    parser: 'answers of APIs',
    limit: MIB,
    families: json,
    run: (input) =>
      resultOf(tool, { status: 200, headers: { 'content-type': 'application/json' }, bytes: Buffer.from(input) }, []),
  },
]

export const target = costTarget('cost/apis', rows)
