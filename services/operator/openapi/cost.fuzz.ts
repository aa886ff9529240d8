import { costTarget, type Families, type Row } from '../../../test/fuzz/cost.ts'
import { json, text } from '../../../test/fuzz/families.ts'
import { compileAside } from './compile-aside.ts'

const MIB = 1024 * 1024

const many = (n: number, size: number, each: (at: number) => string) =>
  Array.from({ length: n / size }, (_, at) => each(at)).join(',')

const operation = (parameters: string) => `{"get":{"parameters":[${parameters}],"responses":{}}}`
const ofPaths = (paths: string, more = '') => `{"openapi":"3.1.0","paths":{${paths}}${more}}`

const documents: Families = {
  paths: (n) => ofPaths(many(n, 60, (at) => `"/p${at}":${operation('')}`)),
  parameters: (n) => ofPaths(`"/a":${operation(many(n, 40, (at) => `{"name":"q${at}","in":"query"}`))}`),
  properties: (n) =>
    ofPaths(
      `"/a":${operation(`{"name":"q","in":"query","schema":{"properties":{${many(n, 14, (at) => `"m${at}":{}`)}}}}`)}`,
    ),
  references: (n) =>
    ofPaths(
      many(n / 2, 100, (at) => `"/p${at}":${operation('{"name":"q","in":"query","schema":{"$ref":"#/x/a0"}}')}`),
      `,"x":{${many(n / 2, 50, (at) => `"a${at}":{"anyOf":[{"$ref":"#/x/a${at + 1}"}]}`)},"a":{}}`,
    ),
  'nested schemas': (n) =>
    ofPaths(
      many(
        n,
        1000,
        (at) =>
          `"/p${at}":${operation(`{"name":"q","in":"query","schema":${'{"not":'.repeat(50)}{}${'}'.repeat(50)}}`)}`,
      ),
    ),
  'expressions of paths': (n) => ofPaths(`"/${'{a}%41'.repeat(n / 6)}":${operation('')}`),
}

const rows: readonly Row[] = [
  {
    parser: 'OpenAPI documents',
    limit: 8 * MIB,
    families: { ...json, ...documents },
    run: (input) => compileAside({ text: input, hidden: [] }),
  },
  {
    parser: 'OpenAPI documents',
    part: 'in YAML',
    limit: MIB / 2,
    families: text,
    run: (input) => compileAside({ text: `openapi: 3.1.0\npaths: {}\nx: ${input}`, hidden: [] }),
  },
]

export const target = costTarget('cost/openapi', rows)
