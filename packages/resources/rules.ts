import type { CelInput } from '@bufbuild/cel'
import { isObject } from '@plat/core'
import type { TSchema } from 'typebox'
import { type CelRule, compileExpression, type Expression } from './cel.ts'
import { type FieldProblem, type Node, under } from './check.ts'

/**
 * Evaluates the rules across fields of a schema (`x-kubernetes-validations`), which its CRD contains as well. The value must have passed
 * `checkStructure`.
 */
export function checkRules(schema: TSchema, value: unknown, path = ''): FieldProblem[] {
  const problems: FieldProblem[] = []
  walk(schema, value, path, problems)
  return problems
}

function walk(node: Node, value: unknown, path: string, out: FieldProblem[]): void {
  for (const rule of node['x-kubernetes-validations'] ?? []) {
    // Rules that compare with the previous object are for the API server: here there is none.
    if (rule.rule.includes('oldSelf')) continue
    if (compiled(rule.rule).test({ self: toCel(node, value) }) !== true) out.push(blame(rule, path))
  }
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) if (node.items) walk(node.items, item, `${path}[${index}]`, out)
  } else if (isObject(value)) {
    for (const [name, item] of Object.entries(value)) {
      const child = childOf(node, name)
      if (child !== null) walk(child, item, node.properties ? under(path, name) : `${path}[${name}]`, out)
    }
  }
}

function childOf(node: Node, name: string): Node | null {
  if (node.properties !== undefined && Object.hasOwn(node.properties, name)) return node.properties[name] ?? null
  return isObject(node.additionalProperties) ? node.additionalProperties : null
}

function blame(rule: CelRule, path: string): FieldProblem {
  const at = path + (rule.fieldPath ?? '')
  if (rule.reason === 'FieldValueRequired') return { path: at, message: `Required value: ${rule.message}` }
  return { path: at, message: `Invalid value: "object": ${rule.message}` }
}

/** CEL values by schema type: whole numbers of an `integer` are ints. */
function toCel(node: Node, value: unknown): CelInput {
  if (typeof value === 'number') return node.type === 'integer' ? BigInt(value) : value
  if (typeof value === 'string' || typeof value === 'boolean') return value
  if (Array.isArray(value)) return value.map((item) => toCel(node.items ?? {}, item))
  if (!isObject(value)) return null
  return new Map(Object.entries(value).map(([name, item]) => [name, toCel(childOf(node, name) ?? {}, item)]))
}

/** Rules come from built-in schemas, so the map is bounded. */
const expressions = new Map<string, Expression>()

function compiled(rule: string): Expression {
  const known = expressions.get(rule)
  if (known !== undefined) return known
  const fresh = compileExpression(rule, ['self'])
  if (typeof fresh === 'string') throw new Error(`rule of a schema: ${rule}: ${fresh}`)
  expressions.set(rule, fresh)
  return fresh
}
