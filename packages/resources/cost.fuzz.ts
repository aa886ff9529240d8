import { costTarget, type Families, type Row } from '../../test/fuzz/cost.ts'
import { json, text } from '../../test/fuzz/families.ts'
import { readManifest } from './manifest.ts'
import { readManifestAside } from './manifest-aside.ts'
import { decodeRendered, upstreamsFileSchema } from './rendered.ts'
import { readJson } from './rest/body.ts'
import { jsonPatch, mergePatch } from './rest/patch.ts'
import { fieldSelector, labelSelector } from './rest/selectors.ts'

const KIB = 1024
const MIB = 1024 * KIB
const count = (n: number, size: number, each: (at: number) => string) =>
  Array.from({ length: n / size }, (_, at) => each(at))

const manifest = (spec: string) =>
  `apiVersion: plat.dev/v1alpha1\nkind: ToolPolicy\nmetadata: {name: a, namespace: b}\nspec: ${spec}\n`
const manifests: Families = {
  rules: (n) => manifest(`\n  rules:\n${'  - {name: a, action: allow}\n'.repeat(n / 29)}`),
  unknown: (n) => manifest(`{${count(n, 9, (at) => `m${at}: 1`).join(', ')}}`),
  flow: (n) => manifest('['.repeat(n)),
  text: (n) => manifest(`\n  cedar: |\n${'    a\n'.repeat(n / 6)}`),
}

const rows: readonly Row[] = [
  {
    parser: 'resources as text',
    limit: MIB,
    families: manifests,
    run: (input) => readManifestAside('ToolPolicy', input),
  },
  // Read without the thread.
  {
    parser: 'resources as text',
    part: 'short',
    limit: 4 * KIB,
    families: manifests,
    run: (input) => readManifest('ToolPolicy', input),
  },
  {
    parser: 'bodies of the resource API',
    limit: 2 * MIB,
    families: json,
    run: (input) => readJson(Buffer.from(input)),
  },
  {
    parser: 'JSON patches',
    limit: 2 * MIB,
    families: {
      tests: (n) => `[${'{"op":"test","path":"","value":{}},'.repeat(n / 36)}{}]`,
      'heads of a list': (n) =>
        `[{"op":"add","path":"/a","value":[${'1,'.repeat(n / 4)}1]}${',{"op":"remove","path":"/a/0"}'.repeat(Math.min(9_999, n / 60))}]`,
      moves: (n) =>
        `[{"op":"add","path":"/a","value":[${'1,'.repeat(n / 4)}1]}${',{"op":"move","from":"/a/0","path":"/a/-"}'.repeat(Math.min(9_999, n / 86))}]`,
      'tests of members': (n) =>
        `[{"op":"add","path":"/a","value":{${count(n / 2, 12, (at) => `"m${at}":1`).join(',')}}}${',{"op":"test","path":"/a","value":{}}'.repeat(Math.min(9_999, n / 90))}]`,
      replacements: (n) =>
        `[{"op":"add","path":"/a","value":[${'1,'.repeat(n / 4)}1]}${',{"op":"replace","path":"/a/0","value":1}'.repeat(Math.min(9_999, n / 90))}]`,
      copies: (n) =>
        `[{"op":"add","path":"/a","value":"${'a'.repeat(1000)}"}${count(
          n,
          42,
          (at) => `,{"op":"copy","from":"/a","path":"/b${at}"}`,
        )
          .slice(0, 9_999)
          .join('')}]`,
      'long pointers': (n) => `[{"op":"add","path":"${'/a'.repeat(n / 2)}","value":1}]`,
      escapes: (n) => `[{"op":"add","path":"/${'~1'.repeat(n / 2)}","value":1}]`,
      members: (n) => `{${count(n, 12, (at) => `"m${at}":1`).join(',')}}`,
    },
    prepare: (input) => {
      const patch: unknown = JSON.parse(input)
      return () => (Array.isArray(patch) ? jsonPatch({}, patch) : mergePatch({}, patch))
    },
  },
  {
    parser: 'selectors',
    limit: 8 * KIB,
    families: {
      ...text,
      terms: (n) => 'a=b,'.repeat(n / 4),
      lists: (n) => `a in (${'b,'.repeat(n / 2)}c)`,
      parentheses: (n) => '('.repeat(n),
    },
    run: (input) => [attempt(() => labelSelector(input)), attempt(() => fieldSelector(input))],
  },
  {
    parser: 'rendered documents',
    limit: MIB,
    families: {
      ...json,
      servers: (n) => `{"version":1,"servers":[${'{"name":"a","url":"http://a"},'.repeat(n / 31)}{}]}`,
    },
    run: (input) => decodeRendered(upstreamsFileSchema, Buffer.from(input), () => []),
  },
]

function attempt(run: () => unknown): unknown {
  try {
    return run()
  } catch {
    return null
  }
}

export const target = costTarget('cost/resources', rows)
