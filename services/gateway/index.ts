export type { GatewayOptions } from './compose.ts'
export { type GatewayConfig, type LoadedConfig, loadGatewayConfig } from './config.ts'
export { budgetCurrencyOf } from './decide/budgets/index.ts'
export { type Gateway, startGateway } from './gateway.ts'
