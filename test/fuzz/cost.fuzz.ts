import {
  canonicalJson,
  checkJson,
  decodeBase64url,
  glob,
  parseDuration,
  parseLossless,
  parseQuantity,
  parseSessionSpiffeId,
  parseStrict,
} from '@plat/core'
import { readYaml } from '@plat/kubernetes'
import { compileExpression } from '@plat/resources'
import { MAX_TOKEN_CHARS, parseCompact, parseJws } from '@plat/tokens'
import { costTarget, json, type Row, text } from './cost.ts'

const yaml: Row['families'] = {
  nesting: (n) => '['.repeat(n),
  dashes: (n) => '- '.repeat(n / 2),
  spaces: (n) => `a:${' '.repeat(n)}`,
  digits: (n) => `a: ${'1'.repeat(n)}`,
  anchors: (n) => Array.from({ length: n / 24 }, (_, at) => `- &a${at} 1\n- *a${at}\n`).join(''),
  keys: (n) => Array.from({ length: n / 12 }, (_, at) => `m${at}: ${at}\n`).join(''),
  quotes: (n) => `a: "${'\\"'.repeat(n / 2)}"`,
  'line breaks': (n) => `a: "${'\n'.repeat(n)}"`,
}

const token: Row['families'] = {
  dots: (n) => '.'.repeat(n),
  header: (n) => `${Buffer.from(`{"alg":"ES256","kid":"${'a'.repeat(n / 2)}"}`).toString('base64url')}.e30.AA`,
  base64: (n) => `${'QUJD'.repeat(n / 4)}.e30.AA`,
}

const stars = glob('*a*b*ab*c')
const expressions = ['args.all(x, true)', 'args == args', '"b" in args', 'size(args) > 1 && args.contains("ab")']
  .map((when) => compileExpression(when, ['args']))
  .filter((expression) => typeof expression !== 'string')

const MIB = 1024 * 1024

const rows: readonly Row[] = [
  { name: 'strict JSON', limit: MIB, families: json, run: (input) => checkJson(Buffer.from(input)) },
  { name: 'strict JSON, value', limit: MIB, families: json, run: (input) => parseStrict(input) },
  {
    name: 'canonical form',
    limit: 256 * 1024,
    families: json,
    run: (input) => canonicalJson(parseLossless(input)),
  },
  {
    name: 'CEL',
    limit: MIB,
    families: text,
    run: (input) => {
      for (const expression of expressions) {
        expression.test({ args: input })
        expression.test({ args: [...Array(1000).keys()].map(() => input) })
      }
    },
  },
  { name: 'glob', limit: MIB, families: text, run: stars },
  { name: 'base64url', limit: MIB, families: text, run: decodeBase64url },
  { name: 'duration', limit: 4096, families: text, run: parseDuration },
  { name: 'quantity', limit: 4096, families: text, run: parseQuantity },
  { name: 'JWS', limit: MAX_TOKEN_CHARS, families: token, run: (input) => [parseJws(input), parseCompact(input)] },
  { name: 'YAML', limit: 16 * 1024, families: yaml, run: readYaml },
  { name: 'SPIFFE ID', limit: 16 * 1024, families: text, run: parseSessionSpiffeId },
]

export const target = costTarget('cost', rows)
