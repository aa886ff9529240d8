export type { ConfigBlock, Problem, Rule } from './block.ts'
