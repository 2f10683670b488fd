# Read objects of the bucket b, all at the same time, each with retriable. Arguments: the URL of a cloud, how many.
require "net/http"
require "retriable"

class Failed < StandardError; end

OPTIONS = { ARGUMENTS }.freeze

# As google-apis-core does in http_command.rb, with the options of Google::Cloud::Storage.new.
def read(uri)
  Retriable.retriable(
    tries: OPTIONS[:retries] + 1,
    max_elapsed_time: OPTIONS[:max_elapsed_time],
    base_interval: OPTIONS[:base_interval],
    max_interval: OPTIONS[:max_interval],
    multiplier: OPTIONS[:multiplier],
    on: [Failed]
  ) do
    raise Failed unless Net::HTTP.get_response(uri).is_a?(Net::HTTPSuccess)
  end
end

Thread.abort_on_exception = true
names = Array.new(ARGV[1].to_i) { |each| format("o%04d", each) }
names.map { |name| Thread.new { read(URI("#{ARGV[0]}/storage/v1/b/b/o/#{name}")) } }.each(&:join)
