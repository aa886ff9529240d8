export { type GatewayConfig, type LoadedConfig, loadGatewayConfig } from './config.ts'
export { type Gateway, type GatewayOptions, startGateway } from './gateway.ts'
